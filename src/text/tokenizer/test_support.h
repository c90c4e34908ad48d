// Small vocabularies built in memory, for tests and the fuzz target.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/tokenizer.h"

namespace strata::testing {

inline MetadataArray string_array(const std::vector<std::string>& texts) {
  MetadataArray array;
  array.element_type = ValueType::kString;
  array.count = texts.size();
  array.strings.assign(texts.begin(), texts.end());
  return array;
}

template <typename T>
MetadataArray number_array(ValueType type, const std::vector<T>& numbers) {
  MetadataArray array;
  array.element_type = type;
  array.count = numbers.size();
  array.numbers.assign(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
  return array;
}

// Normalization rules: the units of a trie, and the replacements its values point at.
inline MetadataArray charsmap(const std::vector<std::uint32_t>& units,
                              std::string_view replacements) {
  MetadataArray array = number_array(ValueType::kUint32, units);
  const auto bytes = static_cast<std::uint32_t>(array.numbers.size());
  array.numbers.insert(0, reinterpret_cast<const char*>(&bytes), sizeof bytes);
  array.numbers += replacements;
  array.element_type = ValueType::kUint8;
  array.count = array.numbers.size();
  return array;
}

// The tokenizer keys of a model file. Owns the strings that the metadata points at.
struct VocabularyFile {
  std::string model = "gpt2";
  std::string pre = "gpt-2";
  std::string name = "test";
  std::vector<std::string> texts;
  std::vector<std::int32_t> kinds;
  std::vector<float> scores;
  std::vector<std::string> merges;
  std::vector<std::pair<std::string, MetadataEntry>> more;

  TokenId add(std::string_view text, TokenKind kind = TokenKind::kNormal, float score = 0) {
    texts.emplace_back(text);
    kinds.push_back(static_cast<std::int32_t>(kind));
    scores.push_back(score);
    return static_cast<TokenId>(texts.size()) - 1;
  }
  TokenId add_control(std::string_view text) { return add(text, TokenKind::kControl); }
  TokenId add_user_defined(std::string_view text) { return add(text, TokenKind::kUserDefined); }

  void add_merge(std::string_view left, std::string_view right) {
    merges.push_back(std::string(left) + " " + std::string(right));
    add(std::string(left) + std::string(right));
  }
  void set(std::string_view key, bool value) {
    more.emplace_back(key, MetadataEntry{ValueType::kBool, value});
  }
  void set(std::string_view key, std::uint64_t value) {
    more.emplace_back(key, MetadataEntry{ValueType::kUint32, value});
  }

  Metadata metadata() const {
    Metadata out;
    const auto put = [&](std::string_view key, ValueType type, MetadataValue value) {
      const bool is_overridden =
          std::ranges::any_of(more, [&](const auto& entry) { return entry.first == key; });
      if (!is_overridden) (void)out.insert(key, {type, std::move(value)});
    };
    put("general.name", ValueType::kString, std::string_view(name));
    put("tokenizer.ggml.model", ValueType::kString, std::string_view(model));
    if (!pre.empty()) put("tokenizer.ggml.pre", ValueType::kString, std::string_view(pre));
    put("tokenizer.ggml.tokens", ValueType::kArray, string_array(texts));
    put("tokenizer.ggml.token_type", ValueType::kArray, number_array(ValueType::kInt32, kinds));
    put("tokenizer.ggml.scores", ValueType::kArray, number_array(ValueType::kFloat32, scores));
    put("tokenizer.ggml.merges", ValueType::kArray, string_array(merges));
    for (const auto& [key, entry] : more) (void)out.insert(key, MetadataEntry(entry));
    return out;
  }

  Result<std::unique_ptr<const Tokenizer>> create() const { return Tokenizer::create(metadata()); }
};

// Byte-level: ids 0 to 255 are the bytes.
inline VocabularyFile byte_vocabulary() {
  VocabularyFile file;
  for (int byte = 0; byte < 256; ++byte) {
    std::string letter;
    append_utf8(byte_to_letter(static_cast<unsigned char>(byte)), letter);
    file.add(letter);
  }
  return file;
}

// SentencePiece: <unk> <s> </s>, then the 256 byte tokens, then U+2581.
inline VocabularyFile spm_vocabulary() {
  VocabularyFile file;
  file.model = "llama";
  file.add("<unk>", TokenKind::kUnknown);
  file.add_control("<s>");
  file.add_control("</s>");
  for (int byte = 0; byte < 256; ++byte)
    file.add(fmt::format("<0x{:02X}>", byte), TokenKind::kByte);
  file.add("\xe2\x96\x81", TokenKind::kNormal, -1000);
  return file;
}

// BERT: [PAD] [UNK] [CLS] [SEP] [MASK], then letters that start words and letters that go on.
inline VocabularyFile wordpiece_vocabulary() {
  VocabularyFile file;
  file.model = "bert";
  for (const std::string_view text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    file.add_control(text);
  file.set("tokenizer.ggml.unknown_token_id", std::uint64_t{1});
  file.set("tokenizer.ggml.cls_token_id", std::uint64_t{2});
  file.set("tokenizer.ggml.seperator_token_id", std::uint64_t{3});
  for (char c = 'a'; c <= 'e'; ++c) {
    file.add(std::string("\xe2\x96\x81") + c);
    file.add(std::string(1, c));
  }
  return file;
}

// T5: <pad> </s> <unk>, then U+2581.
inline VocabularyFile unigram_vocabulary() {
  VocabularyFile file;
  file.model = "t5";
  file.add_control("<pad>");
  file.add_control("</s>");
  file.add("<unk>", TokenKind::kUnknown);
  file.add("\xe2\x96\x81", TokenKind::kNormal, -3);
  file.set("tokenizer.ggml.add_space_prefix", true);
  file.set("tokenizer.ggml.remove_extra_whitespaces", true);
  return file;
}

// RWKV: <s>, then the bytes, spelled as Python does.
inline VocabularyFile rwkv_vocabulary() {
  VocabularyFile file;
  file.model = "rwkv";
  file.add_control("<s>");
  for (int byte = 0; byte < 256; ++byte) file.add(fmt::format("\\x{:02x}", byte));
  return file;
}

}  // namespace strata::testing
