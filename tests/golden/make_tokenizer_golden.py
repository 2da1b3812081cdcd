#!/usr/bin/env python3
"""Tiny tokenizers of each kind that tokenizer.json knows, and what Hugging Face makes with them.

Trains on the repository's own text and writes tests/golden/tokenizers/NAME.json, and
tests/golden/tokenizers.json with the tokens of texts that are hard to split, which
tests/executor/tokenizer/golden_test.cc holds the executor against:

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3
    venv/bin/python tests/golden/make_tokenizer_golden.py
"""

import json
import pathlib

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parent
TEXT = (ROOT.parent.parent / "configs/data/founding-documents.txt").read_text()

# The splits of the published tokenizers. Sources: the tokenizer.json of meta-llama/Llama-3.1-8B and
# Qwen/Qwen2-7B; GPT-2's is ByteLevel's own.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

TEXTS = [
    "",
    " ",
    "We the People of the United States, in Order to form a more perfect Union",
    "It's they'LL I'VE we'd DON'T 'Twas o'clock 'S'T it'\u017f I'\u212a",
    "1 12 123 1234 12345.67 -8,900,000 3rd \u0664\u0665\u0666 \u2460\u2461 \u00bd\u00b2 \u216b",
    "two  three   four    \ttab\t\ttabs \n\n\nlines\r\nof\rmany \n kinds   \n  ",
    "  leading and trailing  ",
    "na\u00efve caf\u00e9 cafe\u0301 \u00c5ngstr\u00f6m \u212bngstr\u00f6m \ufb01ne \u1e9b\u0323",
    "\u0420\u0443\u0441\u0441\u043a\u0438\u0439 \u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u05e2\u05d1\u05e8\u05d9\u05ea \u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0939\u093f\u0928\u094d\u0926\u0940 \ud55c\uad6d\uc5b4 \u65e5\u672c\u8a9e\u306e\u6587\u7ae0 \u4e2d\u6587",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea a\U0001f44d\U0001f3fdb \u2764\ufe0f",
    "no-break\u00a0space thin\u2009space ideographic\u3000space line\u2028sep next\u0085line mvs\u180ehere zw\u200bsp bom\ufefftext",
    "\x00\x01\x1c\x1d\x7f controls \x1b[31m",
    "if (x[0] != 'a' && y->z) { return f(\"s\\n\"); } // C++\n\tdef g(a, *b): pass  # py",
    "https://example.org/a?b=c&d=%20#e user@example.org $1,000.00 100% #tag @name ~/x",
    "<|endoftext|>start<|endoftext|> <|endoftext|>\n<|endoftext|><|endoftext|>end",
    "a <mask> b  <mask>  c<mask>d <wide>  e  <wide>f [pad][padding] CaF\u00c9 caf\u00e9",
    "<s>x</s> <unk> <0x0A> \u2581low\u2581 line \u2581",
    "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz!!!!!!!!!!!!!!!!!!!!!?????????????......----____====",
    "ThisIsCamelCase and_snake_case and-kebab-case ALLCAPS",
    "\u1100\u1161\u11a8 \u0e44\u0e17\u0e22 \u0ba4\u0bae\u0bbf\u0bb4\u0bcd x\u0301\u0302\u0303y \u02b0\u1d2c\u00aa\u00ba \u01c5",
    TEXT[1000:1600],
]


def train(tokenizer, vocab_size, special, alphabet=()):
    tokenizer.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=special,
            initial_alphabet=list(alphabet),
            show_progress=False,
        ),
    )


BYTES = pre_tokenizers.ByteLevel.alphabet()


def gpt2():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    train(made, 460, ["<|endoftext|>"], BYTES)
    made.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    made.add_tokens([AddedToken("<wide>", lstrip=True, rstrip=True), "[pad]", "[padding]"])
    return made


def gpt2_prefix():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    train(made, 330, [], BYTES)
    return made


def llama3():
    made = Tokenizer(models.BPE(ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    train(made, 480, [], BYTES)
    made.add_special_tokens(["<|endoftext|>"])
    # Tokens that no merges make, which ignore_merges finds whole.
    saved = json.loads(made.to_str())
    for token in ["\u0120three", "ThisIs"]:
        saved["model"]["vocab"][token] = len(saved["model"]["vocab"]) + 1
    return Tokenizer.from_str(json.dumps(saved))


def qwen2():
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    train(made, 400, [], BYTES)
    made.add_special_tokens(["<|endoftext|>"])
    made.add_tokens([AddedToken("cafe\u0301", normalized=True)])
    return made


FALLBACK = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]


def llama2():
    made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    train(made, 460, FALLBACK)
    saved = json.loads(made.to_str())
    saved["pre_tokenizer"] = None  # it kept merges within words
    saved["added_tokens"] = saved["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(saved))


def mistral():
    made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    train(made, 420, FALLBACK)
    saved = json.loads(made.to_str())
    saved["pre_tokenizer"]["split"] = False
    saved["added_tokens"] = saved["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(saved))


def words():
    """Unknown characters, digits, and a split that leaves its matches out."""
    made = Tokenizer(models.BPE(unk_token="[unk]", fuse_unk=False))
    made.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=False),
            pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}+|[^\s\p{L}\p{N}]"), "removed", invert=True),
            pre_tokenizers.Metaspace(prepend_scheme="always"),
        ]
    )
    train(made, 200, ["[unk]"])
    return made


def main():
    folder = ROOT / "tokenizers"
    folder.mkdir(exist_ok=True)
    golden = {"tokenizers": tokenizers.__version__, "texts": TEXTS, "tokens": {}}
    for make in (gpt2, gpt2_prefix, llama3, qwen2, llama2, mistral, words):
        made = make()
        (folder / f"{make.__name__}.json").write_text(
            json.dumps(json.loads(made.to_str()), ensure_ascii=False) + "\n"
        )
        golden["tokens"][make.__name__] = [
            made.encode(text, add_special_tokens=False).ids for text in TEXTS
        ]
    (ROOT / "tokenizers.json").write_text(json.dumps(golden) + "\n")


main()
