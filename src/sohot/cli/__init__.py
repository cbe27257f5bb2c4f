"""The command line: parses, calls, prints. Results go to standard output, everything else to standard error."""

import sys

from .._start import prepare_process
from .stopping import SIGINT, STOPS, describe_stop, terminate_politely


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code: 0 success, 1 the work failed, 2 bad arguments or input."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        with terminate_politely():
            prepare_process()
            code = _run(words)
    except BaseException as error:
        code = _end(error, words)
    sys.exit(code)


def _run(words: list[str]) -> int:
    import typer  # these imports take a moment, and a signal may come meanwhile

    from .commands import app
    from .exit_codes import show_warnings

    command = typer.main.get_command(app)
    try:
        with show_warnings():
            code = command.main(args=words, prog_name="sohot", standalone_mode=False)
    except typer.Abort:  # what older versions of typer make of Ctrl-C
        raise KeyboardInterrupt from None
    if code == SIGINT:  # and newer ones
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _end(error: BaseException, words: list[str]) -> int:
    """Say why a command ends, and return its exit code."""
    from ..data.names import visible
    from ..training.errors import record_ending

    if isinstance(error, STOPS):
        code, sentence = describe_stop(error, words)
    else:
        from .exit_codes import describe_end

        end = describe_end(error, words)
        if end is None:
            raise error
        code, sentence = end
    if not record_ending(code, sentence, error) and sentence:
        print(visible(f"sohot: {sentence}"), file=sys.stderr)
    return code
