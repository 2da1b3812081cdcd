#!/usr/bin/env python3
"""Checkers of CUDA's toolkit on the kernels: memory, then races and barriers in shared memory."""
import os
import pathlib
import shutil

import check
import part_kernels as kernels

TOOLS = ("memcheck", "racecheck", "synccheck")


def sanitizer():
    folders = [os.environ.get("CUDA_HOME", "/usr/local/cuda")]
    for place in [shutil.which("compute-sanitizer")] + [f"{folder}/bin/compute-sanitizer" for folder in folders]:
        if place and pathlib.Path(place).exists():
            return place
    raise check.Lacking("compute-sanitizer is neither on PATH nor in the CUDA toolkit")


def watched(part, tool, program, suite):
    words = [sanitizer(), "--tool", tool, "--error-exitcode", "9", "--launch-timeout", "60"]
    return kernels.run_suite(part, program, suite, words, limit=240)


def main():
    part = check.Part("sanitizers")
    kernels.each(part, lambda work: [(f"{tool} {program.name} {suite}", watched, part, tool, program, suite)
                                     for tool in TOOLS for program, suite in work])


if __name__ == "__main__":
    main()
