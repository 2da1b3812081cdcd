"""CUDA's streams and events where there is no GPU: they do nothing, so host order is the only order."""

import contextlib

import torch


class Event:
    def __init__(self, *_, **__):
        pass

    def record(self, *_):
        pass

    wait = synchronize = record

    def query(self):
        return True


class Stream:
    cuda_stream = 0

    def __init__(self, *_, **__):
        pass

    def wait_stream(self, *_):
        pass

    wait_event = synchronize = wait_stream

    def record_event(self, *_):
        return Event()


def is_cuda(device):
    return str(device).isdigit() or "cuda" in str(device)


def stand_in():
    """Puts them in the place of torch's own, and says that there is a GPU."""
    only = Stream()
    torch.cuda.is_available = lambda: True
    torch.cuda.Stream, torch.cuda.Event = Stream, Event
    torch.cuda.current_stream = torch.cuda.default_stream = lambda *_, **__: only
    torch.cuda.stream = lambda _: contextlib.nullcontext()
    torch.cuda.set_stream = torch.cuda.empty_cache = torch.cuda.synchronize = lambda *_: None
    torch.Tensor.cuda = lambda self, *_, **__: self
