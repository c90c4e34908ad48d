#include "serve/ollama_request.h"

#include <charconv>
#include <limits>

#include "serve/body.h"
#include "serve/chat_fields.h"
#include "serve/tool_schemas.h"

namespace strata::serve {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr double kLongest = 1e15;  // milliseconds
constexpr std::int64_t kMostOllamaTokens = std::numeric_limits<std::int32_t>::max();

std::optional<Refusal> read_keep_alive(Fields& fields, Generation& generation) {
  const json::value* value = fields.value("keep_alive");
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const auto seconds = value->to_number<double>();
    if (!(seconds >= -kLongest && seconds <= kLongest / 1000))
      return fields.wrong("keep_alive", "is too long");
    generation.keep_alive =
        seconds < 0 ? milliseconds(-1) : milliseconds(static_cast<std::int64_t>(seconds * 1000));
    return std::nullopt;
  }
  if (const json::string* text = value->if_string())
    generation.keep_alive = parse_duration({text->data(), text->size()});
  if (!generation.keep_alive)
    return fields.wrong("keep_alive", "must be seconds or a duration such as \"5m\"");
  return std::nullopt;
}

std::optional<Refusal> read_options(Fields& fields, Generation& generation) {
  STRATA_ASSIGN(const auto options, fields.object("options"));
  if (options == nullptr) return std::nullopt;
  Fields inner(*options, "options.");
  generation.sampling_path = "options.";
  take_sampling(inner, *options, generation);
  STRATA_CHECK(take_priority(inner, generation));  // Strata's own, as in the other dialect
  STRATA_ASSIGN(const auto most, inner.integer("num_predict", -2, kMostOllamaTokens));
  // -2 asks to fill the context, which an answer without a limit may do anyway.
  if (most) generation.max_tokens = std::max(static_cast<std::int32_t>(*most), -1);
  STRATA_CHECK(take_stops(inner, generation));
  if (const auto context = inner.integer("num_ctx", 1, kMostOllamaTokens); !context.ok())
    return context.status();
  for (const std::string_view name :
       {"num_ctx", "num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap",
        "use_mlock", "low_vram", "numa", "penalize_newline", "f16_kv", "vocab_only", "tfs_z"})
    if (inner.value(name) != nullptr)
      inner.warn(name, "has no effect: the server's own settings hold");
  for (std::string& warning : inner.warnings()) generation.warnings.push_back(std::move(warning));
  return std::nullopt;
}

std::optional<Refusal> read_ollama_format(Fields& fields, Generation& generation) {
  // Strata's own, as in the other dialect.
  STRATA_ASSIGN(const auto grammar, fields.text("grammar"));
  if (grammar && !grammar->empty())
    generation.format = {OutputFormat::Kind::kGrammar, {}, *grammar, "grammar"};
  const json::value* format = fields.value("format");
  if (format == nullptr) return std::nullopt;
  if (!generation.format.grammar.empty())
    return fields.wrong("grammar", "and `format` cannot hold together");
  if (const json::string* word = format->if_string()) {
    if (word->empty()) return std::nullopt;
    if (*word != "json") return fields.wrong("format", "must be \"json\" or a JSON schema");
    generation.format = {OutputFormat::Kind::kJsonObject, {}, {}, "format"};
    return std::nullopt;
  }
  if (!format->is_object()) return fields.wrong("format", "must be \"json\" or a JSON schema");
  generation.format = {OutputFormat::Kind::kJsonSchema, *format, {}, "format"};
  return std::nullopt;
}

std::optional<Refusal> read_think(Fields& fields, Generation& generation) {
  const json::value* think = fields.value("think");
  if (think == nullptr) return std::nullopt;
  if (const bool* on = think->if_bool()) {
    generation.think = *on;
    generation.thinking_field = *on ? "think" : "";
    return std::nullopt;
  }
  const json::string* level = think->if_string();
  if (level == nullptr || (*level != "low" && *level != "medium" && *level != "high"))
    return fields.wrong("think", "must be true, false, low, medium or high");
  generation.think = true;
  generation.thinking_field = "think";
  generation.template_inputs["reasoning_effort"] = *level;
  return std::nullopt;
}

std::optional<Refusal> read_common(Fields& fields, OllamaRequest& out) {
  Generation& generation = out.generation;
  STRATA_ASSIGN(const auto model, fields.text("model"));
  generation.model = model.value_or("");
  STRATA_ASSIGN(const auto stream, fields.boolean("stream"));
  out.stream = stream.value_or(true);
  STRATA_CHECK(read_keep_alive(fields, generation));
  STRATA_CHECK(read_options(fields, generation));
  STRATA_CHECK(read_ollama_format(fields, generation));
  return read_think(fields, generation);
}

void add_warnings(const Fields& fields, Generation& generation) {
  for (std::string& warning : fields.warnings()) generation.warnings.push_back(std::move(warning));
}

}  // namespace

std::optional<milliseconds> parse_duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || !(number >= 0 && number <= kLongest)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    struct Unit {
      std::string_view name;
      double milliseconds;
    };
    constexpr Unit kUnits[] = {{"ms", 1}, {"h", 3.6e6}, {"m", 6e4}, {"s", 1e3}};
    double scale = text.empty() ? 1e3 : 0;
    for (const Unit& unit : kUnits) {
      if (scale != 0 || !text.starts_with(unit.name)) continue;
      scale = unit.milliseconds;
      text.remove_prefix(unit.name.size());
    }
    if (scale == 0) return std::nullopt;
    total += number * scale;
  }
  if (total > kLongest) return std::nullopt;
  return negative ? milliseconds(-1) : milliseconds(static_cast<std::int64_t>(total));
}

Answer<OllamaRequest> read_ollama_chat(std::string_view body) {
  STRATA_ASSIGN(const json::object object, parse_body(body));
  Fields fields(object);
  OllamaRequest out;
  Generation& generation = out.generation;
  STRATA_CHECK(read_common(fields, out));
  const json::value* messages = fields.value("messages");
  const bool none = messages == nullptr || (messages->is_array() && messages->get_array().empty());
  out.load_only = none;
  if (!none) STRATA_CHECK(take_messages(fields, generation));
  STRATA_CHECK(check_tool_schemas(fields));
  STRATA_CHECK(take_tools(fields, generation));
  STRATA_CHECK(fields.refuse({"template"}));
  add_warnings(fields, generation);
  return out;
}

Answer<OllamaRequest> read_ollama_generate(std::string_view body) {
  STRATA_ASSIGN(const json::object object, parse_body(body));
  Fields fields(object);
  OllamaRequest out;
  out.chat = false;
  Generation& generation = out.generation;
  STRATA_CHECK(read_common(fields, out));
  STRATA_ASSIGN(const auto prompt, fields.text("prompt"));
  STRATA_ASSIGN(const auto system, fields.text("system"));
  STRATA_ASSIGN(const auto raw, fields.boolean("raw"));
  STRATA_CHECK(fields.refuse({"suffix", "images", "context", "template"}));
  out.load_only = !prompt || prompt->empty();
  if (raw.value_or(false)) {
    if (system && !system->empty()) return fields.wrong("system", "and `raw` cannot hold together");
    generation.source = Generation::Source::kText;
    generation.text = prompt.value_or("");
  } else {
    if (system && !system->empty())
      generation.messages.push_back(json::object{{"role", "system"}, {"content", *system}});
    generation.messages.push_back(json::object{{"role", "user"}, {"content", prompt.value_or("")}});
  }
  add_warnings(fields, generation);
  return out;
}

}  // namespace strata::serve
