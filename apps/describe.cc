#include "describe.h"

#include <cmath>
#include <cstdlib>
#include <map>

#include "base/printable.h"
#include "text/tokenizer/tokenizer.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

json::string json_text(std::string_view text) { return json::string(replace_invalid_utf8(text)); }

// The shortest decimal that means the same number in the file's own width.
json::value real_of(double value, ValueType type) {
  if (!std::isfinite(value)) return json_text(fmt::format("{}", value));
  if (type != ValueType::kFloat32) return value;
  return std::strtod(fmt::format("{}", static_cast<float>(value)).c_str(), nullptr);
}

// The depth of nested arrays is capped by the reader.
json::value json_array(const MetadataArray& array) {
  json::array out;
  if (const auto flags = array.as_bools(); flags.ok()) {
    for (const bool flag : *flags) out.emplace_back(flag);
  } else if (const auto integers = array.as_integers(); integers.ok()) {
    for (const std::int64_t integer : *integers) out.emplace_back(integer);
  } else if (const auto reals = array.as_floats(); reals.ok()) {
    for (const double real : *reals) out.push_back(real_of(real, array.element_type));
  }
  for (const std::string_view text : array.strings) out.push_back(json_text(text));
  for (const MetadataArray& inner : array.arrays) out.push_back(json_array(inner));
  return out;
}

json::value value_of(const MetadataEntry& entry) {
  if (const auto* flag = std::get_if<bool>(&entry.value)) return *flag;
  if (const auto* natural = std::get_if<std::uint64_t>(&entry.value)) return *natural;
  if (const auto* integer = std::get_if<std::int64_t>(&entry.value)) return *integer;
  if (const auto* real = std::get_if<double>(&entry.value)) return real_of(*real, entry.type);
  if (const auto* text = std::get_if<std::string_view>(&entry.value)) return json_text(*text);
  return json_array(std::get<MetadataArray>(entry.value));
}

void put(json::object& out, std::string_view name, const Metadata& metadata, std::string_view key) {
  if (const MetadataEntry* entry = metadata.find(key)) out[name] = value_of(*entry);
}

// Every key "<prefix><name><suffix>" as out[name].
void put_all(json::object& out, const Metadata& metadata, std::string_view prefix,
             std::string_view suffix = "") {
  for (const std::string_view key : metadata.keys()) {
    if (key.size() <= prefix.size() + suffix.size()) continue;
    if (!key.starts_with(prefix) || !key.ends_with(suffix)) continue;
    const auto name = key.substr(prefix.size(), key.size() - prefix.size() - suffix.size());
    put(out, json_text(name), metadata, key);
  }
}

void put_weights(json::object& out, const GgufFile& file) {
  struct Share {
    std::uint64_t tensors = 0, elements = 0;
    Bytes bytes = 0;
  };
  std::map<FormatId, Share> shares;
  Share all;
  for (const TensorInfo& tensor : file.tensors()) {
    for (Share* share : {&all, &shares[tensor.format]}) {
      share->tensors += 1;
      share->elements += tensor.rows() * tensor.row_elements();
      share->bytes += tensor.bytes;
    }
  }
  out["parameters"] = all.elements;
  out["tensor_count"] = all.tensors;
  out["tensor_bytes"] = all.bytes;
  if (all.elements > 0)
    out["bits_per_weight"] =
        8.0 * static_cast<double>(all.bytes) / static_cast<double>(all.elements);
  json::array formats;
  for (const auto& [format, share] : shares)
    formats.push_back(json::object{{"format", json::string(format_name(format))},
                                   {"tensors", share.tensors},
                                   {"parameters", share.elements},
                                   {"bytes", share.bytes}});
  out["formats"] = std::move(formats);
}

void put_shape(json::object& out, const ModelManifest& manifest) {
  constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"context_length", "context_length"},
      {"layers", "block_count"},
      {"embedding_length", "embedding_length"},
      {"feed_forward_length", "feed_forward_length"},
      {"heads", "attention.head_count"},
      {"kv_heads", "attention.head_count_kv"},
      {"sliding_window", "attention.sliding_window"},
      {"experts", "expert_count"},
      {"experts_used", "expert_used_count"}};
  for (const auto& [name, key] : kKeys) put(out, name, manifest.metadata(), manifest.full_key(key));
}

json::object special_tokens(const Metadata& metadata) {
  json::object ids;
  put_all(ids, metadata, "tokenizer.ggml.", "_token_id");
  const auto tokens = metadata.get_array("tokenizer.ggml.tokens");
  json::object out;
  for (const auto& [name, id] : ids) {
    json::object token{{"id", id}};
    if (tokens.ok() && (id.is_int64() || id.is_uint64())) {
      const auto index =
          id.is_int64() ? static_cast<std::uint64_t>(id.get_int64()) : id.get_uint64();
      if (index < (*tokens)->strings.size()) token["text"] = json_text((*tokens)->strings[index]);
    }
    out[name] = std::move(token);
  }
  return out;
}

void put_tokenizer(json::object& out, const ModelManifest& manifest) {
  const Metadata& metadata = manifest.metadata();
  if (const auto tokens = metadata.get_array("tokenizer.ggml.tokens"); tokens.ok())
    out["vocabulary_size"] = (*tokens)->count;
  else
    put(out, "vocabulary_size", metadata, manifest.full_key("vocab_size"));
  json::object tokenizer;
  put(tokenizer, "model", metadata, "tokenizer.ggml.model");
  if (const auto model = metadata.get_string("tokenizer.ggml.model"); model.ok()) {
    const std::string_view kind = tokenizer_kind(*model);
    tokenizer["kind"] = kind.empty() ? "not supported" : json::string(kind);
  }
  put(tokenizer, "pre", metadata, "tokenizer.ggml.pre");
  for (const std::string_view flag : {"add_bos_token", "add_eos_token", "add_space_prefix"})
    put(tokenizer, flag, metadata, fmt::format("tokenizer.ggml.{}", flag));
  if (auto special = special_tokens(metadata); !special.empty())
    tokenizer["special_tokens"] = std::move(special);
  if (!tokenizer.empty()) out["tokenizer"] = std::move(tokenizer);
  put(out, "chat_template", metadata, "tokenizer.chat_template");
  json::object named;
  put_all(named, metadata, "tokenizer.chat_template.");
  if (!named.empty()) out["named_chat_templates"] = std::move(named);
  json::object sampling;
  put_all(sampling, metadata, "general.sampling.");
  if (!sampling.empty()) out["sampling"] = std::move(sampling);
}

json::array tensors_of(const GgufFile& file) {
  json::array out;
  for (const TensorInfo& tensor : file.tensors()) {
    json::array shape;
    for (std::uint32_t d = 0; d < tensor.dimensions; ++d) shape.emplace_back(tensor.shape[d]);
    out.push_back(json::object{{"name", json_text(tensor.name)},
                               {"format", json::string(format_name(tensor.format))},
                               {"shape", std::move(shape)},
                               {"bytes", tensor.bytes},
                               {"offset", tensor.offset},
                               {"file", tensor.file}});
  }
  return out;
}

template <typename Texts>
json::array texts_of(const Texts& texts) {
  json::array out;
  for (const std::string& text : texts) out.push_back(json_text(text));
  return out;
}

}  // namespace

json::object describe(const ModelManifest& manifest, bool with_tensors) {
  const GgufFile& file = manifest.file();
  json::object out;
  out["name"] = json_text(manifest.name());
  out["architecture"] = json_text(manifest.architecture());
  out["gguf_version"] = file.version();
  out["files"] = texts_of(file.paths());
  out["file_bytes"] = file.total_bytes();
  put_weights(out, file);
  put_shape(out, manifest);
  put_tokenizer(out, manifest);
  if (!file.warnings().empty()) out["warnings"] = texts_of(file.warnings());
  if (with_tensors) out["tensors"] = tensors_of(file);
  return out;
}

json::object metadata_json(const ModelManifest& manifest, bool with_lists) {
  const Metadata& metadata = manifest.metadata();
  json::object out;
  for (const std::string_view key : metadata.keys()) {
    const MetadataEntry* const entry = metadata.find(key);
    const bool is_list = std::holds_alternative<MetadataArray>(entry->value);
    out[json_text(key)] = is_list && !with_lists ? json::value(nullptr) : value_of(*entry);
  }
  return out;
}

}  // namespace strata::apps
