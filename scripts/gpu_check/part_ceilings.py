#!/usr/bin/env python3
"""What the GPU moves and multiplies at best, and the versions of what drives it."""
import json

import check


def ceilings(part):
    words = ["--largest-bytes", 4 << 20, "--seconds-each", 0.001, "--largest-rows", 16] if part.small else []
    said = json.loads(part.must(part.program("gpu_ceilings"), *words, limit=200).out)
    bf16 = [p["tflops"] for p in said["products"] if p["dtype"] == "bf16" and p["product"] == "forward"]
    copies = [m["gb_per_s"] for m in said["moves"] if m["move"] == "copy"]
    return {"ok": bool(bf16) and max(bf16) > 0 and max(copies) > 0, "best_tflops_bf16": max(bf16, default=0),
            "best_copy_gb_per_s": max(copies, default=0), "measured": said}


def clocks(part):
    """Clocks, power and temperature, right after products have run: whether the GPU was throttled."""
    fields = "clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu,memory.used,clocks_event_reasons.active"
    done = part.run("nvidia-smi", "-i", part.options.gpu, f"--query-gpu={fields}", "--format=csv", limit=30)
    return {"ok": None, "nvidia_smi": done.out.strip()}


def versions(part):
    said = part.must(part.program("shardwise-run"), "--version", limit=30).out.strip()
    return {"shardwise_run": said}


def main():
    part = check.Part("ceilings")
    part.plan(["versions", "ceilings", "clocks"])
    part.case("versions", versions, part)
    part.case("ceilings", ceilings, part)
    part.case("clocks", clocks, part)
    part.finish()


if __name__ == "__main__":
    main()
