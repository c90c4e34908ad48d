#!/usr/bin/env python3
"""Writes small vocabularies and what other implementations make of texts with them.

NAME.gguf is the vocabulary, texts.inp the texts with a line `__ggml_vocab_test__` after each,
NAME.out their token ids, a line for each. The ids come from the packages sentencepiece (unigram) and
tokenizers (wordpiece), and from the few lines below (rwkv). Needs those two and gguf."""
import io
import pathlib
import random

import gguf
import sentencepiece
import tokenizers

HERE = pathlib.Path(__file__).parent
SEPARATOR = "\n__ggml_vocab_test__\n"
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6

WORDS = """the of and to in a is that it for was on are as with his they be at one have this from
or had by hot but some what there we can out other were all your when up use word how said an each
she which do their time if will way about many then them would write like so these her long make
thing see him two has look more day could go come did my sound no most number who over know water
than call first people may down side been now find un der ing ed er naïve café résumé Straße Übung
größer hello world token tokens tokenize tokenizer""".split()

TEXTS = [
    "hello", " hello", "hello ", "  hello   world  ", "Hello, World!", "\thello\nworld\r\n", " ",
    "", "   \n ", "the cat's out", "don't we'll they've", "naïve café résumé", "NAÏVE CAFÉ RÉSUMÉ",
    "Straße Übung größer ẞ", "e\u0301a\u0300 A\u030a", "ﬁne ﬂow ﬃ", "① ② Ａｂｃ　ｄ", "㌔ ﷺ",
    "İstanbul ıI", "ΑΣΣ ας ὈΔΥΣΣΕΎΣ", "Привет мир Ё й", "你好 world 世界", "日本語のテキスト", "カ\u3099 ガ",
    "가나다 한국어 각", "हिन्दी தமிழ் ไทย", "🚀 🙂\u200d↔️ 🦙🦙", "a\u00adb a\u200bb a\u0000b",
    "x\u00a0y\u2002z\u3000w\u0085v\u2028u\u000bt", "1234567890 3.14 1,000", "a-b_c/d\\e|f~g`h^i",
    "\u037e \u1fef \u2000 \u212b", "豈 龜 \U0002f800 \U0002b820 \U0002b920", "\u2581x \u2581 x\u2581",
    "[UNK] [CLS] <s> </s> <unk> ##ing", "unthinkable untokenizable", "\ue000 \U000e0001 \u0378 \ufffd",
    "hello" * 19 + "hell", "hello" * 20, "hello" * 20 + "h", "aaaa" * 20 + " b", "\U0010ffff\U00010400\U00010428",
]


def random_texts(count):
    rng = random.Random(1)
    letters = [*"abcdefghinorstuwxyz  \t\n.,'-!0123éüßÅñç\u0301中가🙂ﬁ　▁"]
    for _ in range(count):
        pieces = rng.choices(WORDS + letters, k=rng.randint(1, 12))
        yield rng.choice(["", " "]).join(pieces)


TEXTS += random_texts(200)


def write(name, encode, model, tokens, kinds, **keys):
    writer = gguf.GGUFWriter(HERE / f"{name}.gguf", "none")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    for key, value in keys.items():
        add = {bool: writer.add_bool, int: writer.add_uint32}.get(type(value), writer.add_array)
        add(f"tokenizer.ggml.{key.replace('__', '.')}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    lines = (" ".join(map(str, encode(text))) for text in TEXTS)
    (HERE / f"{name}.out").write_text("".join(line + "\n" for line in lines))


def charsmap_rules():
    """A few rules of each sort: one to one, one to many, many to one, to nothing, to a space."""
    pairs = {"ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "①": "1", "②": "2", "㌔": "キロ", "e\u0301": "é",
             "カ\u3099": "ガ", "\t": " ", "\n": " ", "\r": " ", "　": " ", "\u00a0": " ", "\u200b": "",
             "\u00ad": "", "ﷺ": "صلى الله عليه وسلم", "A\u030a": "Å", "\u212b": "Å"}
    pairs.update({chr(0xFEE0 + c): chr(c) for c in range(0x21, 0x7F)})

    def codes(text):
        return " ".join(f"{ord(c):X}" for c in text)
    return "".join(f"{codes(a)}\t{codes(b)}\n" for a, b in pairs.items())


def write_unigram(name, byte_fallback, prefix, merge_spaces):
    rules = HERE / "rules.tsv"
    rules.write_text(charsmap_rules())
    rng = random.Random(2)
    corpus = [" ".join(rng.choices(WORDS, k=8)) for _ in range(2000)]
    corpus += [text for text in TEXTS if text.strip() and "\0" not in text]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=model, vocab_size=1000, hard_vocab_limit=False,
        model_type="unigram", normalization_rule_tsv=str(rules), byte_fallback=byte_fallback,
        add_dummy_prefix=prefix, remove_extra_whitespaces=merge_spaces, pad_id=0, eos_id=1, unk_id=2,
        bos_id=-1, num_threads=1, minloglevel=2)
    rules.unlink()
    peer = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    # The rules are field 2 of the normalizer, which is field 3 of the model.
    charsmap = field(field(model.getvalue(), 3), 2)
    ids = range(peer.vocab_size())
    kinds = [UNKNOWN if peer.is_unknown(i) else CONTROL if peer.is_control(i) else
             BYTE if peer.is_byte(i) else NORMAL for i in ids]
    write(name, peer.encode, "t5", [peer.id_to_piece(i).encode() for i in ids], kinds,
          scores=[peer.get_score(i) for i in ids], add_space_prefix=prefix,
          remove_extra_whitespaces=merge_spaces, precompiled_charsmap=charsmap)


def field(message, number):
    """The bytes of a field of a protocol buffer."""
    def varint(at):
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at
    at = 0
    while at < len(message):
        tag, at = varint(at)
        if tag & 7 == 2:
            size, at = varint(at)
            if tag >> 3 == number:
                return message[at:at + size]
            at += size
        elif tag & 7 == 0:
            _, at = varint(at)
        else:
            at += 4 if tag & 7 == 5 else 8
    raise KeyError(number)


def write_wordpiece(name, lower):
    letters = sorted({c for text in TEXTS + WORDS for c in text + text.lower() if c.strip("\u2581")})
    normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lower)
    letters = sorted({c for c in normalizer.normalize_str("".join(letters)) if c.strip()})
    plain = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters)]
    plain += sorted({normalizer.normalize_str(w) for w in WORDS if len(w) > 2})
    plain += ["##ing", "##able", "##ize"]
    plain = list(dict.fromkeys(plain))
    peer = tokenizers.Tokenizer(tokenizers.models.WordPiece(
        {token: i for i, token in enumerate(plain)}, unk_token="[UNK]"))
    peer.normalizer = normalizer
    peer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    kinds = [CONTROL if i < 5 else NORMAL for i in range(len(plain))]
    tokens = [t if k == CONTROL else t[2:] if t.startswith("##") else "\u2581" + t
              for t, k in zip(plain, kinds)]
    write(name, lambda text: peer.encode(text).ids, "bert", [token.encode() for token in tokens],
          kinds, cls_token_id=2, seperator_token_id=3, unknown_token_id=1, normalizer__lowercase=lower)


def write_rwkv(name):
    keys = [bytes([i]) for i in range(256)]
    keys += [b"\n\n", b"\r\n", b"  ", b"    ", b"'s", b"\\n", b'"', b"\xe4\xbd\xa0", b"\xf0\x9f", b"aaaa"]
    keys += [w.encode() for word in WORDS for w in (word, " " + word)]
    keys = list(dict.fromkeys(keys))
    by_key = {key: i + 1 for i, key in enumerate(keys)}
    longest = max(map(len, keys))

    def encode(text):
        ids, rest = [], text.encode()
        while rest:
            size = next(n for n in range(longest, 0, -1) if rest[:n] in by_key)
            ids.append(by_key[rest[:size]])
            rest = rest[size:]
        return ids
    write(name, encode, "rwkv", [b"<s>"] + [repr(key)[2:-1].encode() for key in keys],
          [CONTROL] + [NORMAL] * len(keys))


def main():
    (HERE / "texts.inp").write_bytes("".join(text + SEPARATOR for text in TEXTS).encode())
    write_unigram("unigram", byte_fallback=False, prefix=True, merge_spaces=True)
    write_unigram("unigram-bytes", byte_fallback=True, prefix=False, merge_spaces=False)
    write_wordpiece("wordpiece", lower=True)
    write_wordpiece("wordpiece-cased", lower=False)
    write_rwkv("rwkv")


if __name__ == "__main__":
    main()
