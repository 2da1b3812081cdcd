"""Lets Megatron-LM, which asks for CUDA, run where there is none: its tensors have no bytes.

MEGATRON names a checkout of NVIDIA/Megatron-LM. Tensors are on `device()`: "meta" unless a maker takes
another one.
"""

import contextlib
import logging
import os
import pathlib
import sys
import types
import typing
import warnings

import torch
import torch.distributed as dist
import typing_extensions
from torch.overrides import TorchFunctionMode
from torch.testing._internal.distributed.fake_pg import FakeStore

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import idle_cuda

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
sys.path.insert(0, os.environ["MEGATRON"])
if not hasattr(typing, "override"):
    typing.override = typing_extensions.override

_place = {"device": torch.device("meta")}


def device():
    return _place["device"]


def use(place):
    _place["device"] = torch.device(place)


class CudaHere(TorchFunctionMode):
    """Tensors that are asked for on CUDA are made on device()."""

    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        kwargs = kwargs or {}
        asked = kwargs.get("device")
        if asked is not None and idle_cuda.is_cuda(asked):
            kwargs["device"] = device()
        return function(*args, **kwargs)


_type = torch.Tensor.type
_NAMES = {torch.bfloat16: "BFloat16Tensor", torch.float32: "FloatTensor",
          torch.float16: "HalfTensor"}


def _cuda_type(self, *args, **kwargs):
    if args or kwargs:
        return _type(self, *args, **kwargs)
    return "torch.cuda." + _NAMES.get(self.dtype, "Tensor")


idle_cuda.stand_in()
torch.Tensor.type = _cuda_type
torch.cuda.current_device = device
torch.cuda.get_device_name = lambda *_: "NVIDIA H100"
torch.cuda.get_device_capability = lambda *_: (9, 0)
torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(
    name="NVIDIA H100", major=9, minor=0, multi_processor_count=132, total_memory=80 << 30)


@contextlib.contextmanager
def process_group(rank, world):
    """A process group of any size in which nothing travels."""
    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()
