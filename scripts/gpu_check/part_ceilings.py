#!/usr/bin/env python3
"""What the GPU moves and multiplies at best, and the versions of what drives it."""
import json

import check


def ceilings(part):
    words = ["--largest-bytes", 4 << 20, "--seconds-each", 0.001, "--largest-rows", 16, "--largest-sequence", 32] if part.small else []
    said = json.loads(part.must(part.program("gpu_ceilings"), *words, limit=200).out)
    products, copies = said["products"], [m for m in said["moves"] if m["move"] == "copy"]
    # Of what is far larger than the GPU's cache, in which smaller copies stay: 3.8 TB/s of 16 MiB on an H100, 3.0 of 1 GiB.
    far = max((m["bytes"] for m in copies), default=0) / 4
    row = {f"best_tflops_{dtype}": max((p["tflops"] for p in products if p["dtype"] == dtype), default=0)
           for dtype in ("bf16", "fp32", "tf32")}
    row["best_copy_gb_per_s"] = max((m["gb_per_s"] for m in copies if m["bytes"] >= far), default=0)
    row["ok"] = row["best_tflops_bf16"] > 0 and row["best_copy_gb_per_s"] > 0
    # TFLOP/s by pass and size of heads, of the half of the products that a causal mask leaves.
    for each in said.get("attention", []):
        key = f"attention_{each['pass']}_{each['head_dim']}_tflops"
        row[key] = max(row.get(key, 0), each["tflops"])
    return {**row, "measured": said}


def clocks(part):
    """Clocks, power and temperature, right after products have run: whether the GPU was throttled."""
    fields = "clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu,memory.used,clocks_event_reasons.active"
    done = part.run("nvidia-smi", "-i", part.options.gpu, f"--query-gpu={fields}", "--format=csv", limit=30)
    return {"ok": None, "nvidia_smi": done.out.strip()}


LIBRARIES = ("driver", "cuBLASLt", "cuDNN", "NCCL")


def versions(part):
    """As shardwise-run printed them, with what it found on this machine."""
    said = part.must(part.program("shardwise-run"), "--version", limit=60).out.strip().splitlines()
    named = {name: next((line for line in said if name in line), None) for name in LIBRARIES}
    return {"ok": None, "shardwise_run": said, **named}


def main():
    part = check.Part("ceilings")
    part.plan(["versions", "ceilings", "clocks"])
    part.case("versions", versions, part)
    part.case("ceilings", ceilings, part)
    part.case("clocks", clocks, part)
    part.finish()


if __name__ == "__main__":
    main()
