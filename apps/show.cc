// strata show: what a model file holds.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/printable.h"
#include "commands.h"
#include "describe.h"
#include "model_stores.h"
#include "say.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

constexpr std::size_t kTemplateLines = 5;
constexpr std::size_t kValueBytes = 400;  // of a value on the screen

struct Options {
  std::string model;
  bool tensors = false;
  bool as_json = false;
};

// Four digits and the unit that suits: "1.235M", "1.177 MiB".
std::string scaled(double value, double base, std::initializer_list<const char*> units) {
  const char* const* unit = units.begin();
  while (value >= base && unit + 1 != units.end()) {
    value /= base;
    ++unit;
  }
  return fmt::format("{:.4g}{}", value, *unit);
}
std::string in_bytes(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024,
                {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"});
}
std::string in_parameters(std::uint64_t count) {
  return scaled(static_cast<double>(count), 1000, {"", "k", "M", "B", "T"});
}

std::uint64_t natural(const json::object& object, std::string_view key) {
  return object.at(key).to_number<std::uint64_t>();
}

void line(std::string_view label, std::string_view text) { fmt::print("{:<19} {}\n", label, text); }

// Any JSON value on one line: strings bare, the rest as JSON.
std::string on_one_line(const json::value& value) {
  if (const json::string* text = value.if_string()) return printable(*text, kValueBytes);
  if (const double* real = value.if_double()) return fmt::format("{}", *real);
  return printable(json::serialize(value), kValueBytes);
}

void print_weights(const json::object& model) {
  if (natural(model, "parameters") == 0) return line("parameters", "none: a vocabulary only");
  line("parameters", fmt::format("{} ({})", in_parameters(natural(model, "parameters")),
                                 natural(model, "parameters")));
  line("bits per weight", fmt::format("{:.2f}", model.at("bits_per_weight").as_double()));
  std::string_view label = "formats";
  for (const json::value& entry : model.at("formats").as_array()) {
    const json::object& format = entry.as_object();
    line(label, fmt::format("{:<8}{:>6} tensors {:>11}", on_one_line(format.at("format")),
                            natural(format, "tensors"), in_bytes(natural(format, "bytes"))));
    label = "";
  }
}

std::string tokenizer_label(std::string_view key) {
  if (key == "model") return "tokenizer";
  if (key == "kind") return "tokenizer kind";
  if (key == "pre") return "pre-tokenizer";
  std::string label(key);
  std::ranges::replace(label, '_', ' ');
  return label;
}

void print_tokenizer(const json::object& tokenizer) {
  for (const auto& [key, value] : tokenizer)
    if (key != "special_tokens") line(tokenizer_label(key), on_one_line(value));
  const json::value* special = tokenizer.if_contains("special_tokens");
  if (special == nullptr) return;
  for (const auto& [name, value] : special->as_object()) {
    const json::object& token = value.as_object();
    std::string text = on_one_line(token.at("id"));
    if (const json::value* spelled = token.if_contains("text"))
      text += fmt::format(" \"{}\"", on_one_line(*spelled));
    line(fmt::format("token {}", printable(name, 64)), text);
  }
}

void print_template(std::string_view label, const json::value& value) {
  const json::string* whole = value.if_string();
  if (whole == nullptr) return line(label, on_one_line(value));
  std::string_view rest = *whole;
  for (std::size_t i = 0; i < kTemplateLines && !rest.empty(); ++i) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    line(i == 0 ? label : "", printable(rest.substr(0, end), kValueBytes));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!rest.empty()) line("", fmt::format("... {} more bytes; --json shows all", rest.size()));
}

void print_tensors(const json::array& tensors) {
  fmt::print("\n{:<40} {:<8} {:>24} {:>14} {:>16} {:>4}\n", "tensor", "format", "shape", "bytes",
             "offset", "file");
  for (const json::value& value : tensors) {
    const json::object& tensor = value.as_object();
    std::string shape;
    for (const json::value& length : tensor.at("shape").as_array())
      shape += (shape.empty() ? "" : " x ") + on_one_line(length);
    fmt::print("{:<40} {:<8} {:>24} {:>14} {:>16} {:>4}\n", on_one_line(tensor.at("name")),
               on_one_line(tensor.at("format")), shape, natural(tensor, "bytes"),
               natural(tensor, "offset"), natural(tensor, "file") + 1);
  }
}

void print_text(const json::object& model) {
  constexpr std::pair<const char*, std::string_view> kPlain[] = {
      {"context_length", "context length"},
      {"layers", "layers"},
      {"embedding_length", "embedding length"},
      {"feed_forward_length", "feed forward length"},
      {"heads", "heads"},
      {"kv_heads", "key/value heads"},
      {"sliding_window", "sliding window"},
      {"experts", "experts"},
      {"experts_used", "experts used"},
      {"vocabulary_size", "vocabulary size"}};
  line("name", on_one_line(model.at("name")));
  line("architecture", on_one_line(model.at("architecture")));
  const json::array& files = model.at("files").as_array();
  line("size", fmt::format("{} in {} file{}", in_bytes(natural(model, "file_bytes")), files.size(),
                           files.size() == 1 ? "" : "s"));
  if (files.size() > 1)
    for (const json::value& file : files) line("", on_one_line(file));
  print_weights(model);
  for (const auto& [key, label] : kPlain)
    if (const json::value* value = model.if_contains(key)) line(label, on_one_line(*value));
  if (const json::value* tokenizer = model.if_contains("tokenizer"))
    print_tokenizer(tokenizer->as_object());
  if (const json::value* sampling = model.if_contains("sampling"))
    for (const auto& [name, value] : sampling->as_object())
      line(fmt::format("sampling {}", printable(name, 64)), on_one_line(value));
  if (const json::value* chat = model.if_contains("chat_template"))
    print_template("chat template", *chat);
  else
    line("chat template", "none");
  if (const json::value* named = model.if_contains("named_chat_templates"))
    for (const auto& [name, value] : named->as_object())
      print_template(fmt::format("template {}", printable(name, 64)), value);
  if (const json::value* tensors = model.if_contains("tensors")) print_tensors(tensors->as_array());
}

Status show(const Options& options) {
  STRATA_ASSIGN(const std::string path, find_model(options.model));
  STRATA_ASSIGN(GgufFile file, GgufFile::open(path));
  STRATA_ASSIGN(const ModelManifest manifest, ModelManifest::from_file(std::move(file), false));
  const json::object model = describe(manifest, options.tensors);
  for (const std::string& warning : manifest.file().warnings()) say("warning: {}\n", warning);
  if (options.as_json)
    fmt::print("{}\n", json::serialize(model));
  else
    print_text(model);
  return {};
}

}  // namespace

void add_show(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("show", "Say what a model file holds");
  const auto options = std::make_shared<Options>();
  command
      ->add_option("model", options->model,
                   "GGUF file (of a split model the first part), or the name of a cached model")
      ->required();
  command->add_flag("--tensors", options->tensors, "List every tensor");
  command->add_flag("--json", options->as_json, "Print one JSON object");
  command->callback([options, &exit_code] {
    const Status status = show(*options);
    if (status.ok()) return;
    say("error: {}\n", printable(status.message(), 4096));
    exit_code = 1;
  });
}

}  // namespace strata::apps
