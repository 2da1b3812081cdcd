#!/usr/bin/env python3
"""What each kernel for GPUs takes of a multiprocessor, from its code for sm_90: registers, shared memory, widths of loads.

scripts/kernel_table.py ARCHIVE           print docs/measurements/gpu_kernels.md for libexecutor_kernels_cuda.a
scripts/kernel_table.py ARCHIVE --check   exit code 1 where a kernel is worse than that page has it, or not in it
scripts/kernel_table.py ARCHIVE --write   write the page

No GPU is needed. Loads, stores and branches are what NVIDIA's cuobjdump and nvdisasm read. Without these two --check leaves
them out, and the page cannot be made: exit code 3.
"""
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import device_code

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "measurements" / "gpu_kernels.md"
WIDTHS = (128, 64, 32, 16, 8)

# A multiprocessor of sm_90. Source: CUDA C++ Programming Guide, Technical Specifications per Compute Capability;
# granularities from cuda_occupancy.h of the toolkit, with which tests/scripts/kernel_table_test.py compares blocks_of().
REGISTERS, REGISTER_UNIT = 64 << 10, 256
SHARED, SHARED_UNIT, RESERVED = 228 << 10, 128, 1 << 10
WARPS, BLOCKS, WARP, PARTITIONS = 64, 32, 32, 4
MULTIPROCESSORS = 132  # H100 SXM


class Missing(Exception):
    """A program of NVIDIA's that is not on this machine, or code for sm_90 that is not in the archive."""


def blocks_of(threads, registers, shared):
    """Blocks that run on a multiprocessor at once.

    shared: bytes of a block, with the RESERVED ones that the driver has of each.
    """
    warps = math.ceil(threads / WARP)
    a_warp = math.ceil(registers * WARP / REGISTER_UNIT) * REGISTER_UNIT
    of_registers = REGISTERS // PARTITIONS // a_warp * PARTITIONS // warps
    of_shared = SHARED // (math.ceil(shared / SHARED_UNIT) * SHARED_UNIT)
    return min(of_registers, of_shared, WARPS // warps, BLOCKS)


def folder_of_tools():
    """The folder with cuobjdump and nvdisasm: on PATH, of a toolkit, or of NVIDIA's wheels for this Python."""
    places = [pathlib.Path(each) for each in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(each)]
    places += [pathlib.Path(os.environ[name], "bin") for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    nvcc = shutil.which("nvcc")
    places += [pathlib.Path(nvcc).resolve().parent] if nvcc else []
    places += [pathlib.Path("/usr/local/cuda/bin")]
    places += sorted(pathlib.Path(sysconfig.get_path("purelib"), "nvidia").glob("*/bin"), reverse=True)
    for place in places:
        if all(os.access(place / name, os.X_OK) for name in ("cuobjdump", "nvdisasm")):
            return place
    raise Missing("no cuobjdump and nvdisasm here: they are in the CUDA toolkit, and in the Python packages "
                  "nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm")


def said(tools, *words):
    """What cuobjdump prints of the archive's code for sm_90."""
    done = subprocess.run([str(tools / "cuobjdump"), *words], capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"})
    if done.returncode != 0:
        raise SystemExit(f"kernel_table.py: cuobjdump {' '.join(words)}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def named(symbols):
    """The kernels' names without what all have: namespaces of ours, results and parameters."""
    done = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True)
    names = {}
    for symbol, text in zip(symbols, done.stdout.split("\n")):
        text = re.sub(r"shardwise::exec::|cuda::|\(anonymous namespace\)::|^void ", "", text)
        text = re.sub(r"\(\w+\)(?=\d)", "", text)  # the type of an enumerator
        names[symbol] = text[:text.index("(")] if "(" in text else text
    return names


def width_of(words):
    """Bits that one thread moves by an instruction such as LDG.E.U16.CONSTANT."""
    for width in WIDTHS:
        if any(re.fullmatch(rf"[US]?{width}", word) for word in words[1:]):
            return width
    return 32


def moves_and_branches(code):
    """(loads by width, stores by width, branches) of the SASS of a kernel. Global memory only."""
    loads, stores, branches = dict.fromkeys(WIDTHS, 0), dict.fromkeys(WIDTHS, 0), 0
    for at, operation, rest in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*)([^;]*);", code):
        words = operation.split(".")
        if words[0] in ("LDG", "LDGSTS", "LD"):
            loads[width_of(words)] += 1
        elif words[0] in ("STG", "ST"):
            stores[width_of(words)] += 1
        elif words[0] in ("BRA", "BRX", "JMP", "JMX") and int(at, 16) != address_of(rest):
            branches += 1
    return loads, stores, branches


def address_of(operands):
    """Where a branch goes to; a kernel ends with one to itself."""
    found = re.search(r"0x([0-9a-f]+)", operands)
    return int(found.group(1), 16) if found else -1


def number_in(path, pattern):
    return int(re.search(pattern, (ROOT / path).read_text(encoding="utf-8")).group(1))


def most_dynamic_shared():
    return number_in("executor/kernels/cuda/device_code/device.h", r"kMostSharedBytes = (\d+) << 10;") << 10


def code_of(archive):
    """{symbol: SASS} of the archive's code for sm_90. Raises Missing where nothing here can read it"""
    sass = said(folder_of_tools(), "-sass", "-arch", "sm_90", archive)
    return dict(re.findall(r"Function : (\S+)\n(.*?)(?=\n\s*Function : |\nFatbin|\Z)", sass, re.S))


def kernels_of(archive, codes):
    """(version of ptxas, {(file, kernel): its row}) of a library or an object. codes: code_of(archive), or {} without moves."""
    version, kernels = device_code.kernels_of(archive, 90)
    if not kernels:
        raise Missing(f"{archive} has no code for sm_90 that is not compressed: see SHARDWISE_CUDA_ARCHITECTURES")
    names = named([symbol for _, symbol, _ in kernels])
    rows = {}
    for file, symbol, facts in kernels:
        code = codes.get(symbol, "")
        # Only the reserved bytes, and the code reads shared memory: it is given when the kernel is launched.
        dynamic = facts["shared"] <= RESERVED and re.search(r"\bLDSM?\b|\bSTS\b|LDGSTS", code) is not None
        block = max(facts["shared"], RESERVED) + (most_dynamic_shared() if dynamic else 0)
        row = {"threads": facts["threads"], "registers": facts["registers"], "shared": facts["shared"], "dynamic": dynamic,
               "spilled": facts["local"] + len(re.findall(r"\b(?:LDL|STL)\b", code)),
               "blocks": blocks_of(facts["threads"], facts["registers"], block) if facts["threads"] else 0}
        if code:
            row["loads"], row["stores"], row["branches"] = moves_and_branches(code)
        rows[file, names[symbol]] = row
    if len(rows) != len(kernels):
        raise SystemExit(f"kernel_table.py: {len(kernels)} kernels have {len(rows)} names")
    return version, rows


def moved(counts):
    return ", ".join(f"{width}: {counts[width]}" for width in WIDTHS if counts[width]) or "none"


def cells(key, row):
    """A line of the page's table."""
    count = sum(width // 8 * (row["loads"][width] + row["stores"][width]) for width in WIDTHS)
    shared = f"{row['shared']:,}" + (" and dynamic" if row["dynamic"] else "")
    bound = [f"{row['threads']}", f"{row['blocks']}", f"{row['blocks'] * MULTIPROCESSORS:,}"] if row["threads"] else ["-"] * 3
    a_byte = f"{row['branches'] / count:.2f}" if count else "-"
    return [*key, bound[0], str(row["registers"]), shared, *bound[1:], moved(row["loads"]), moved(row["stores"]),
            str(row["branches"]), a_byte]


HEAD = ["file", "kernel", "threads", "registers", "shared, B", "blocks", "places", "loads", "stores", "branches", "a byte"]


def grids_of(rows):
    """Lines of the kernels whose grid has a bound: its blocks beside the places for them."""
    norm = number_in("planner/cost/kernels/gpu_workspace.h", r"int64_t kMost = (\d+);")
    squares = number_in("executor/kernels/cuda/movement.h", r"kSquareParts = (\d+);")
    lines = []
    for (file, kernel), row in sorted(rows.items()):
        blocks = norm if kernel.startswith("norm_backward_rows<") else squares if kernel.startswith("square_parts") else 0
        if blocks:
            places = row["blocks"] * MULTIPROCESSORS
            lines.append(f"| {file} | `{kernel}` | {blocks:,} | {places:,} | {blocks / places:.2f} |")
    return lines


def page_of(version, rows):
    lines = ["| " + " | ".join(HEAD) + " |", "|---|---|" + "---:|" * 5 + "---|---|---:|---:|"]
    for key, row in sorted(rows.items()):
        file, kernel, *rest = cells(key, row)
        lines.append("| " + " | ".join([f"`{file}`", f"`{kernel}`", *rest]) + " |")
    half = sum(row["blocks"] * math.ceil(row["threads"] / WARP) >= WARPS // 2 for row in rows.values())
    return PAGE_TEXT.format(count=len(rows), version=version, half=half, spilled=sum(row["spilled"] > 0 for row in rows.values()),
                            table="\n".join(lines), grids="\n".join(grids_of(rows)))


PAGE_TEXT = """# Kernels on a multiprocessor

`scripts/kernel_table.py build/dev/executor/kernels/cuda/libexecutor_kernels_cuda.a --write` made
this page from the code of ptxas {version} for sm_90. No GPU was asked.

{count} kernels, of which {spilled} spill registers or have local memory. {half} can have half of the 64 warps
of a multiprocessor, or more.

- *Threads* is the bound that a kernel states, and the size of its blocks.
- *Shared* has the 1,024 bytes that are reserved in each block with shared memory. *And dynamic* is
  memory that a launch gives. It is 99 KiB at most, and *blocks* is for that much.
- *Blocks* is how many run on a multiprocessor at once. It has 64 Ki registers, 228 KiB of shared
  memory, 2,048 threads and room for 32 blocks. A test compares the rule with CUDA's own
  (`cuda_occupancy.h`).
- *Places* are those blocks on the 132 multiprocessors of an H100 SXM.
- *Loads* and *stores* are instructions for global memory in the code, by the bits that a thread
  moves. Copies from there to shared memory count as loads.
- *Branches* are those of the code. *A byte* divides them by the bytes of one run of each load and
  store.

`tests/scripts/kernel_table_test.py` compares this table with a build. It fails where a kernel
spills, or has more registers, fewer blocks or narrower moves. It also fails where the page or the
build lacks a kernel. Moves are compared where NVIDIA's cuobjdump and nvdisasm are. There the test
also compares the numbers of `scripts/device_code.py` with those of cuobjdump.

## Grids against places

Most grids grow with a tensor. Those of norms' backward passes and of squares of gradients have a
bound. A last wave that is nearly empty wastes the places of a whole one.

| file | kernel | grid, at most | places | waves |
|---|---|---:|---:|---:|
{grids}

## Kernels

{table}
"""


def kept(page):
    """(version, {(file, kernel): cells by head}) of a page."""
    rows = {}
    for line in page.split("\n"):
        parts = [each.strip() for each in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(parts) == len(HEAD):
            row = dict(zip(HEAD, parts))
            rows[row["file"].strip("`"), row["kernel"].strip("`")] = row
    version = re.search(r"ptxas ([\d.]+)", page)
    return version.group(1) if version else "", rows


def widest(text):
    return int(text.split(":")[0]) if ":" in text else 0


def worse(version, rows, page):
    """A line for each kernel that is worse than the page has it, or that is in one of the two alone."""
    of_version, before = kept(page)
    lines = [f"{file}: {kernel}: not in the page" for file, kernel in sorted(rows.keys() - before.keys())]
    lines += [f"{file}: {kernel}: in the page, and not in the build" for file, kernel in sorted(before.keys() - rows.keys())]
    for key, row in sorted(rows.items()):
        says = ": ".join(key)
        if row["spilled"]:
            lines.append(f"{says}: spills registers or has local memory")
        if key not in before:
            continue
        then = before[key]
        if row["threads"] and row["blocks"] < int(then["blocks"].replace("-", "0")):
            lines.append(f"{says}: {row['blocks']} blocks on a multiprocessor, {then['blocks']} in the page")
        # Another compiler gives other numbers of registers, which are worse only where blocks are fewer.
        if version == of_version and row["registers"] > int(then["registers"]):
            lines.append(f"{says}: {row['registers']} registers, {then['registers']} in the page")
        lines += [f"{says}: its widest {name} move {widest(moved(row[name]))} bits, {widest(then[name])} in the page"
                  for name in ("loads", "stores") if name in row and widest(moved(row[name])) < widest(then[name])]
    return lines


def main():
    if len(sys.argv) not in (2, 3) or (len(sys.argv) == 3 and sys.argv[2] not in ("--check", "--write")):
        print(__doc__, file=sys.stderr)
        return 2
    if not os.path.exists(sys.argv[1]):
        print(f"kernel_table.py: {sys.argv[1]}: no such file: build executor_kernels_cuda", file=sys.stderr)
        return 2
    check = sys.argv[2:] == ["--check"]
    codes = {}
    try:
        codes = code_of(sys.argv[1])
    except Missing as missing:
        print(f"kernel_table.py: {missing}", file=sys.stderr)
        if not check:
            return 3
    try:
        version, rows = kernels_of(sys.argv[1], codes)
    except Missing as missing:
        print(f"kernel_table.py: {missing}", file=sys.stderr)
        return 3
    if check:
        lines = worse(version, rows, PAGE.read_text(encoding="utf-8"))
        print("\n".join(lines) or f"{len(rows)} kernels, none worse than {PAGE.relative_to(ROOT)} has it")
        return 1 if lines else 0
    if sys.argv[2:] == ["--write"]:
        PAGE.write_text(page_of(version, rows), encoding="utf-8")
    else:
        print(page_of(version, rows), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
