#!/usr/bin/env python3
"""Jobs drawn at random, put to an engine's own code as its maker beside this file puts the goldens'.

    ENGINE=fsdp2  # or fsdp1, pytorch_ddp, deepspeed, megatron_ddp, megatron_fsdp: what its maker needs is there
    venv/bin/python tests/golden/engines/random_cases.py $ENGINE SEED COUNT > /tmp/$ENGINE.json
    build/dev/bin/engine_goldens /tmp/$ENGINE.json           # cases, figures, how many differ
    build/dev/bin/engine_goldens --known /tmp/$ENGINE.json   # which, and by how much

The same seed draws the same jobs. A job that the engine refuses is named on standard error.
"""

import importlib
import random
import sys

import golden
import shapes

MAKERS = {"fsdp2": "fsdp2", "fsdp1": "fsdp1", "pytorch_ddp": "pytorch_ddp", "deepspeed": "deepspeed_zero",
          "megatron_ddp": "megatron_ddp", "megatron_fsdp": "megatron_fsdp"}
TABLES = [32000, 50257, 128256, 152064]


def sometimes(draw, chance, **words):
    return words if draw.random() < chance else {}


def shape(draw, layers, tp=1, odd=True):
    """A Llama, Qwen or GPT-2 whose widths tp divides; odd ones are of no round numbers."""
    heads = draw.choice([4, 8, 12, 16, 20, 32])
    groups = draw.choice([g for g in range(1, heads + 1) if heads % g == 0 and g % tp == 0])
    head = draw.choice([32, 48, 64, 80, 96, 112, 128] if odd else [64, 80, 96, 128])
    hidden = draw.choice([heads * head] * (1 if odd else 3) + [
        draw.randrange(252, 4100, 4) if odd else draw.choice([1024, 1536, 2048, 2560, 4096])])
    inner = draw.choice([4 * hidden, draw.randrange(512, 16000, 4 if odd else 64)])
    table = draw.choice(TABLES + ([draw.randrange(1000, 200000)] if odd else [2000, 8192]))
    if draw.random() < 0.1:
        return {**shapes.GPT2, "n_layer": layers, "n_head": heads, "n_embd": heads * head,
                **({} if odd else {"n_positions": 8192, "n_ctx": 8192}), "vocab_size": table}
    model = shapes.llama(layers, hidden, inner, heads, groups, table, head,
                         tie_word_embeddings=draw.random() < 0.3)
    kind = draw.choice(["llama", "llama", "qwen2", "qwen3"])
    return model if kind == "llama" else {**model, "model_type": kind, "use_sliding_window": False}


def mixture(draw, layers):
    model = draw.choice([shapes.MIXTRAL, shapes.DEEPSEEK, {**shapes.DEEPSEEK, "q_lora_rank": 1536}])
    return {**model, "num_hidden_layers": max(2, layers)}


def grouped_experts(draw, layers):
    """A Mixtral or Qwen3 with drawn experts, as transformers has them."""
    heads, wide = draw.choice([8, 16, 32]), draw.choice([768, 1408, 2048, 3584])
    hidden, table = draw.choice([1024, 2048, 3072, 4096]), draw.choice(TABLES)
    model = shapes.llama(layers, hidden, wide, heads, draw.choice([1, heads // 4, heads]), table,
                         draw.choice([64, 128]))
    experts, used = draw.choice([(8, 2), (16, 2), (60, 4), (64, 8)])
    if draw.random() < 0.5:
        return {**model, "model_type": "mixtral", "num_local_experts": experts,
                "num_experts_per_tok": used}
    return {**model, "model_type": "qwen3_moe", "num_experts": experts, "num_experts_per_tok": used,
            "moe_intermediate_size": wide, "norm_topk_prob": True, "decoder_sparse_step": 1,
            "mlp_only_layers": [], "use_sliding_window": False}


def draw_megatron_ddp(draw, maker, name):
    tp, pp = draw.choice([1, 1, 1, 2, 4]), draw.choice([1, 1, 1, 2, 4])
    layers = pp * draw.choice([1, 2, 3, 5, 8])
    ranks = draw.choice([2, 3, 4, 6, 8, 12, 16, 24, 48, 64, 96, 256])
    more = {**sometimes(draw, tp > 1, tp=tp), **sometimes(draw, pp > 1, pp=pp)}
    if draw.random() < 0.2:
        model = mixture(draw, layers)
        more |= {"sequential": draw.random() < 0.5, **sometimes(draw, tp > 1, etp=1),
                 "ep": draw.choice([ep for ep in (1, 2, 4, 8) if ranks % ep == 0])}
    else:
        model = shape(draw, layers, tp)
        more |= sometimes(draw, 0.2, cp=2)
    zero = draw.choice([0, 1, 1, 1])
    if zero == 1 and ranks % (2 * more.get("ep", 1)) == 0:
        more |= sometimes(draw, 0.2, dp_replicate=2)
    more |= sometimes(draw, 0.2, busbw=True)
    more |= sometimes(draw, 0.25, bucket=draw.choice([1_000_000, 7_654_321, 100_000_000]))
    return model, maker.case(name, ranks, zero=zero, stage=draw.randrange(pp),
                             fp32=draw.random() < 0.7, overlap=draw.random() < 0.8, **more)


def draw_megatron_fsdp(draw, maker, name):
    zero = draw.choice([0, 1, 2, 3, 3, 3])
    more = sometimes(draw, 0.2, tp=2)
    if zero > 0:
        more |= sometimes(draw, 0.25, dp_replicate=2)
    if zero == 3 and "dp_replicate" in more:
        more |= sometimes(draw, 0.5, outer_shards_optimizer=True)
    elif zero > 1 and "dp_replicate" not in more:
        more |= sometimes(draw, 0.25, double_buffer=True)
    return shape(draw, draw.choice([1, 2, 3, 4, 6]), more.get("tp", 1)), maker.case(
        name, draw.choice([2, 3, 4, 6, 8, 16, 24, 48, 64, 96, 512]), zero,
        fp32=draw.random() < 0.3, step=zero > 1 and draw.random() < 0.6, **more)


def batch(draw, longest):
    length = draw.choice([n for n in (256, 512, 1024, 2048, 4096, 8192) if n <= longest])
    return draw.choice([n for n in (1, 1, 1, 2, 3, 4) if n * length <= 16384]), length


def draw_fsdp2(draw, maker, name):
    more = draw.choice([{}, {}, {}, {"micro": 2}, {"micro": 2, "reduce_every": False},
                        {"micro": 2, "tells_last": True}, {"reshard": False}, {"replicate": 2},
                        {"frozen": True}])
    more = {**more, "norm": draw.choice(["composite", "fused"])}
    if draw.random() < 0.2 and "frozen" not in more:
        return grouped_experts(draw, draw.choice([3, 4])), maker.case(
            name, draw.choice([2, 4, 8]), *batch(draw, 8192), draw.choice(["none", "full"]), **more)
    return shape(draw, draw.choice([2, 3, 4, 6]), odd=False), maker.case(
        name, draw.choice([2, 4, 8, 16, 24, 64, 256]), *batch(draw, 8192),
        draw.choice(["none", "full"]), **more)


def draw_fsdp1(draw, maker, name):
    more = draw.choice([{}, {}, {}, {"strategy": "NO_SHARD"}, {"strategy": "SHARD_GRAD_OP"},
                        {"strategy": "HYBRID_SHARD", "replicate": 2}])
    return shape(draw, draw.choice([2, 3, 4, 6]), odd=False), maker.case(
        name, draw.choice([2, 4, 8, 16, 24, 64]), *batch(draw, 4096),
        draw.choice(["none", "full"]), **more)


def draw_pytorch_ddp(draw, maker, name):
    return shape(draw, draw.choice([2, 3, 4, 6]), odd=draw.random() < 0.3), maker.case(
        name, draw.choice([2, 8, 24, 64]), *batch(draw, 8192), draw.choice(["none", "full"]),
        draw.choice(["fp32", "bf16", "bf16"]), draw.choice([1, 1, 2]))


def draw_deepspeed(draw, maker, name):
    heads = draw.choice([4, 8])
    model = shapes.llama(draw.choice([2, 4, 6]), 64 * heads, draw.choice([700, 1376, 2048]), heads,
                         draw.choice([heads, heads // 2]), draw.choice([2000, 16000, 32000]),
                         tie_word_embeddings=draw.random() < 0.3)
    stage = draw.choice([0, 1, 2, 3, 3])
    more = sometimes(draw, stage == 3 and draw.random() < 0.4, sub_group=2_000_000)
    return model, maker.case(name, draw.choice([2, 3, 8, 48, 64]), stage,
                             draw.choice(["none", "full"]), **more)


def main():
    engine, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    maker = importlib.import_module(MAKERS[engine])
    draw, models, results = random.Random(seed), {}, []
    for number in range(count):
        name = f"{seed}-{number}"
        models[name], case = globals()[f"draw_{engine}"](draw, maker, name)
        maker.MODELS[name] = models[name]
        try:
            result = (maker.fullest if engine == "deepspeed" else maker.measure)(case)
        except Exception as problem:
            print(f"{maker.name(case)}: {type(problem).__name__}: {problem}"[:300], file=sys.stderr)
            if engine.startswith("megatron"):
                importlib.import_module("megatron.core.parallel_state").destroy_model_parallel()
            continue
        results += [result[0] if engine == "megatron_fsdp" else result] if result else []
    golden.dump("tests/golden/engines/random_cases.py", {"seed": str(seed)}, models, results)


if __name__ == "__main__":
    main()
