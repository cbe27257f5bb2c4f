# syntax=docker/dockerfile:1
# docker build --tag sohot .                                   for processors
# docker build --tag sohot:cuda --build-arg DEVICE=cuda .      for NVIDIA GPUs (docker run --gpus all)
# docker run --rm --volume "$PWD:/data" --user "$(id -u):$(id -g)" sohot fit --source photos --target sketches …
ARG DEVICE=cpu
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS cpu
ENV PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu

# The torch of PyPI brings CUDA along; Triton compiles the launcher of each kernel on first use.
FROM python:${PYTHON}-slim AS cuda
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*

FROM ${DEVICE}
ARG EXTRAS=onnx
COPY pyproject.toml constraints.txt README.md LICENSE /opt/sohot/
COPY src /opt/sohot/src
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --constraint /opt/sohot/constraints.txt "/opt/sohot[${EXTRAS}]"

# Caches go to a home that any --user may write to, so that runs in /data can belong to whoever started the container.
RUN useradd --create-home sohot && chmod 1777 /home/sohot
ENV HOME=/home/sohot USER=sohot
USER sohot
WORKDIR /data
ENTRYPOINT ["sohot"]
CMD ["--help"]
