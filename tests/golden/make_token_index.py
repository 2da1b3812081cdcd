#!/usr/bin/env python3
"""Small index files by Megatron-LM's own writer: tests/fuzz/corpus/token_index/NAME.idx.

    python3 -m venv venv && venv/bin/pip install numpy torch megatron-core==0.16.1
    venv/bin/python tests/golden/make_token_index.py
"""

import pathlib
import tempfile

import numpy
import torch
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "fuzz/corpus/token_index"


def build(name, dtype, documents, modes=False):
    with tempfile.TemporaryDirectory() as scratch:
        builder = IndexedDatasetBuilder(f"{scratch}/tokens.bin", dtype=dtype, multimodal=modes)
        for document in documents:
            for sequence in document:
                builder.add_item(torch.tensor(sequence, dtype=torch.int64), *([1] if modes else []))
            builder.end_document()
        builder.finalize(FOLDER / f"{name}.idx")


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    build("uint16", numpy.uint16, [[[1, 2, 3], [4]], [[5, 6]], [[], [7]]])
    build("int32", numpy.int32, [[[100000, 2, 3]], [[5, 6, 7, 8, 9]]])
    build("modes", numpy.uint16, [[[1, 2], [3]]], modes=True)


main()
