#!/usr/bin/env python3
"""Runs a training script that asks for CUDA and NCCL on CPU tensors and gloo.

    python -m torch.distributed.run --nproc-per-node 2 cuda_on_cpu.py SCRIPT ARGUMENT…

Numbers are right, times are not.
"""

import contextlib
import os
import runpy
import sys

import torch
import torch._dynamo  # notes torch's own functions, so before any is replaced
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.distributed_c10d import _IllegalWork

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import idle_cuda


def here(device):
    return "cpu" if idle_cuda.is_cuda(device) else device


def on_cpu(function):
    def call(*args, **kwargs):
        if kwargs.get("device") is not None:
            kwargs["device"] = here(kwargs["device"])
        return function(*args, **kwargs)

    return call


def to_here(tensor, *args, **kwargs):
    places = (str, torch.device)
    args = [here(arg) if isinstance(arg, places) else arg for arg in args]
    return _to(tensor, *args, **kwargs)


def mesh_here(mesh, device_type, *args, **kwargs):
    _mesh(mesh, here(device_type), *args, **kwargs)


def finished(collective):
    """Host order is the only order: a collective is done when its call returns. Who waits for
    CUDA's streams alone would free a tensor that gloo's threads still write to."""

    def call(*args, **kwargs):
        work = collective(*args, **kwargs)
        if work is not None and type(work) is not _IllegalWork:  # of one that is coalesced
            work.wait()
        return work

    return call


@contextlib.contextmanager
def coalesced(*args, **kwargs):
    with _coalesced(*args, **kwargs) as works:
        yield works
    works.wait()


idle_cuda.stand_in()
_mesh, _to = DeviceMesh.__init__, torch.Tensor.to
_group, _coalesced = dist.init_process_group, dist._coalescing_manager
for name in ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "broadcast"):
    setattr(dist, name, finished(getattr(dist, name)))
dist._coalescing_manager = coalesced
for name in ("empty", "zeros", "ones", "full", "arange", "tensor"):
    setattr(torch, name, on_cpu(getattr(torch, name)))
torch.Tensor.to = to_here
torch.nn.Module.to_empty = on_cpu(torch.nn.Module.to_empty)
torch.cuda.current_device = lambda: 0
torch.cuda.set_device = lambda *_: None
torch.cuda.memory_allocated = lambda *_: 0
torch.optim.Optimizer._accelerator_graph_capture_health_check = lambda self: None
dist.init_process_group = lambda backend, *args, **kwargs: _group("gloo", *args, **kwargs)
DeviceMesh.__init__ = mesh_here

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))  # as Python does for a script
    runpy.run_path(sys.argv[0], run_name="__main__")
