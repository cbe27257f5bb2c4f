"""Started by test_ray_commands.py: a Ray cluster of two machines with one CPU each, until standard input ends."""

import sys

from ray.cluster_utils import Cluster

if __name__ == "__main__":
    small = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    cluster.add_node(**small)
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()
