// Small GGUF files, whole and broken, and a walk over everything a file says. For tests and
// fuzzing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/manifest.h"
#include "gguf/writer.h"

namespace strata::testing {

using ByteVector = std::vector<std::uint8_t>;

inline std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Lays bytes down as told, right or wrong.
class RawGguf {
 public:
  RawGguf(std::uint64_t tensors, std::uint64_t pairs, std::uint32_t version = 3) {
    bytes_ = "GGUF";
    u32(version).u64(tensors).u64(pairs);
  }
  template <typename T>
  RawGguf& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  RawGguf& u32(std::uint32_t value) { return number(value); }
  RawGguf& u64(std::uint64_t value) { return number(value); }
  RawGguf& text(std::string_view text) {
    u64(text.size());
    bytes_ += text;
    return *this;
  }
  RawGguf& key(std::string_view name, ValueType type) {
    return text(name).u32(static_cast<std::uint32_t>(type));
  }
  RawGguf& array(std::string_view name, ValueType elements, std::uint64_t count) {
    return key(name, ValueType::kArray).u32(static_cast<std::uint32_t>(elements)).u64(count);
  }
  RawGguf& tensor(std::string_view name, std::initializer_list<std::uint64_t> shape,
                  std::uint32_t format, std::uint64_t offset) {
    text(name).u32(static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t length : shape) u64(length);
    return u32(format).u64(offset);
  }
  // Pads to the alignment, then `count` zeros: the tensor data.
  RawGguf& data(std::size_t count, std::size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment + count);
    return *this;
  }

  std::span<const std::uint8_t> bytes() const { return bytes_of(bytes_); }
  Result<GgufFile> parse() const { return GgufFile::parse(bytes(), bytes_.size(), "m.gguf"); }

 private:
  std::string bytes_;
};

inline ByteVector written(const GgufWriter& writer) {
  ByteVector out;
  const Status status = writer.write([&](std::span<const std::uint8_t> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return Status();
  });
  return status.ok() ? out : ByteVector();
}

struct SampleFile {
  std::string name;
  ByteVector bytes;
};

// Every value type, as scalar and as array.
inline ByteVector sample_of_all_types() {
  GgufWriter writer(64);
  writer.add("general.architecture", "llama");
  const auto both = [&](const std::string& name, auto value) {
    const std::vector values = {value, value};
    writer.add(name, value);
    writer.add_array(name + "s", std::span<const decltype(value)>(values));
  };
  both("u8", std::uint8_t{200});
  both("i8", std::int8_t{-100});
  both("u16", std::uint16_t{60000});
  both("i16", std::int16_t{-30000});
  both("u32", std::uint32_t{4000000000});
  both("i32", std::int32_t{-2000000000});
  both("u64", std::uint64_t{1} << 63);
  both("i64", std::int64_t{-1} << 62);
  both("f32", 1.5f);
  both("f64", -2.5);
  writer.add("bool", true);
  const bool flags[] = {true, false, true};
  writer.add_array("bools", std::span<const bool>(flags));
  const std::string texts[] = {"one", "", std::string("\0\xff", 2)};
  writer.add_array("texts", texts);
  MetadataArray inner{ValueType::kInt8, 2, std::string("\x01\xff", 2), {}, {}};
  MetadataArray nested{ValueType::kArray, 2, {}, {}, {inner, inner}};
  writer.add("nested", MetadataEntry{ValueType::kArray, nested});
  return written(writer);
}

inline ByteVector sample_model() {
  static const ByteVector kData(288);
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add("general.name", "Sample");
  writer.add("llama.block_count", std::uint32_t{2});
  writer.add("llama.context_length", std::uint32_t{128});
  writer.add("llama.rope.freq_base", 10000.0f);
  const std::int32_t heads[] = {4, 8};
  writer.add_array("llama.attention.head_count", std::span<const std::int32_t>(heads));
  const std::string tokens[] = {"<s>", "a", "b"};
  writer.add("tokenizer.ggml.model", "llama");
  writer.add_array("tokenizer.ggml.tokens", tokens);
  const std::uint64_t square[] = {8, 8}, blocks[] = {256, 2}, deep[] = {32, 2, 2, 2};
  const std::span<const std::uint8_t> data(kData);
  writer.add_tensor("output_norm.weight", FormatId::F32, std::span(square, 1), data.first(32));
  writer.add_tensor("token_embd.weight", FormatId::F32, square, data.first(256));
  writer.add_tensor("blk.0.attn_q.weight", FormatId::Q4_K, blocks, data.first(288));
  writer.add_tensor("blk.0.experts", FormatId::Q4_0, deep, data.first(144));
  return written(writer);
}

inline std::vector<SampleFile> sample_files() {
  ByteVector version2 = sample_model();
  version2[4] = 2;
  GgufWriter part;
  part.add("general.architecture", "llama");
  part.add("split.no", std::uint16_t{0});
  part.add("split.count", std::uint16_t{2});
  part.add("split.tensors.count", std::int32_t{1});
  return {{"types", sample_of_all_types()},
          {"model", sample_model()},
          {"version2", version2},
          {"part", written(part)},
          {"empty", written(GgufWriter())}};
}

// Calls every getter with every key and tensor; returns a number so that nothing is optimized out.
inline std::size_t walk_array(const MetadataArray& array) {
  std::size_t seen = array.count;
  if (const auto values = array.as_integers(); values.ok()) seen += values->size();
  if (const auto values = array.as_floats(); values.ok()) seen += values->size();
  if (const auto values = array.as_bools(); values.ok()) seen += values->size();
  for (const std::string_view text : array.strings)
    for (const char c : text) seen += static_cast<unsigned char>(c);
  for (const MetadataArray& inner : array.arrays) seen += walk_array(inner);
  return seen;
}

inline std::size_t walk_metadata(const Metadata& metadata) {
  std::size_t seen = 0;
  for (const std::string_view key : metadata.keys()) {
    seen += metadata.contains(key) ? 1 : 0;
    if (const auto value = metadata.optional_string(key); value.ok()) seen += (*value)->size();
    seen += metadata.optional_integer(key).ok() + metadata.optional_float(key).ok();
    seen += metadata.optional_bool(key).ok();
    if (const auto array = metadata.get_array(key); array.ok()) seen += walk_array(**array);
  }
  return seen;
}

inline std::size_t walk_manifest(const ModelManifest& manifest) {
  std::size_t seen = manifest.name().size();
  const std::string prefix = manifest.architecture() + ".";
  for (std::string_view key : manifest.metadata().keys()) {
    if (key.starts_with(prefix)) key.remove_prefix(prefix.size());
    seen += manifest.integer(key, 0, 1 << 20).ok() + manifest.integer_or(key, 1, 0, 100).ok();
    seen += manifest.real(key).ok() + manifest.real_or(key, 1.0).ok();
    seen += manifest.boolean_or(key, true).ok() + manifest.string_or(key, "").ok();
    seen += manifest.per_layer(key, 2, 0, 1 << 20).ok();
  }
  for (const TensorInfo& tensor : manifest.file().tensors())
    seen += manifest.tensor(tensor.name, {tensor.shape[0], tensor.shape[1]}).ok() +
            manifest.optional_tensor(tensor.name, {1, 2, 3, 4, 5}).ok();
  return seen;
}

inline std::size_t walk_file(std::span<const std::uint8_t> bytes, Bytes file_bytes) {
  auto file = GgufFile::parse(bytes, file_bytes, "walk.gguf");
  if (!file.ok()) return file.status().message().size();
  std::size_t seen = walk_metadata(file->metadata());
  for (const TensorInfo& tensor : file->tensors()) {
    if (tensor.offset + tensor.bytes > file_bytes || file->find_tensor(tensor.name) != &tensor)
      __builtin_trap();
    seen += tensor.rows() * tensor.row_elements();
  }
  const auto manifest = ModelManifest::from_file(*file, false);
  return manifest.ok() ? seen + walk_manifest(*manifest) : seen;
}

}  // namespace strata::testing
