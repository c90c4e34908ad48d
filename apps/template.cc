// strata template: what a chat template makes of a conversation.
#include <boost/json.hpp>
#include <fstream>
#include <memory>
#include <string>

#include "base/printable.h"
#include "base/status.h"
#include "commands.h"
#include "gguf/gguf_file.h"
#include "model_stores.h"
#include "options.h"
#include "read_input.h"
#include "say.h"
#include "text/chat.h"

namespace strata::apps {
namespace {

constexpr std::size_t kMostInputDepth = 128;

struct Options {
  std::string source;
  std::string messages;
  bool as_json = false;
  bool join_parts = false;
};

Result<boost::json::object> read_inputs(const std::string& path) {
  STRATA_ASSIGN(const std::string text, read_whole(path));
  boost::json::parse_options options;
  options.max_depth = kMostInputDepth;
  boost::json::error_code error;
  boost::json::value parsed = boost::json::parse(text, error, {}, options);
  if (error) return invalid_argument("{} is not JSON: {}", path, error.message());
  if (!parsed.is_object())
    return invalid_argument("{} must hold an object with \"messages\"", path);
  return std::move(parsed.get_object());
}

// Takes a special token's text out of the inputs, where they give it.
void take_token(boost::json::object& inputs, std::string_view name, std::string& text) {
  const auto found = inputs.find(name);
  if (found == inputs.end() || !found->value().is_string()) return;
  text = std::string(found->value().get_string());
  inputs.erase(found);
}

Result<ChatTemplate> load(const Options& options, boost::json::object& inputs) {
  std::string source;
  SpecialTexts special;
  STRATA_ASSIGN(const std::string path, find_model(options.source));
  std::ifstream probe(path, std::ios::binary);
  char magic[4] = {};
  probe.read(magic, sizeof(magic));
  if (std::string_view(magic, sizeof(magic)) == "GGUF") {
    STRATA_ASSIGN(const GgufFile file, GgufFile::open(path));
    if (!file.metadata().contains("tokenizer.chat_template"))
      return not_found("{} has no chat template; pass a template file instead", options.source);
    STRATA_ASSIGN(const std::string_view text,
                  file.metadata().get_string("tokenizer.chat_template"));
    source = std::string(text);
    special = special_texts(file.metadata());
  } else {
    STRATA_ASSIGN(source, read_whole(path));
  }
  take_token(inputs, "bos_token", special.bos);
  take_token(inputs, "eos_token", special.eos);
  take_token(inputs, "unk_token", special.unk);
  take_token(inputs, "pad_token", special.pad);
  return ChatTemplate::create(source, std::move(special));
}

std::string to_json(const std::vector<RenderedSpan>& spans) {
  boost::json::array pieces;
  for (const RenderedSpan& span : spans)
    pieces.push_back(
        boost::json::object{{"text", replace_invalid_utf8(span.text)}, {"content", span.content}});
  return boost::json::serialize(boost::json::object{
      {"text", replace_invalid_utf8(jinja::join(spans))}, {"spans", std::move(pieces)}});
}

Result<int> run(const Options& options) {
  STRATA_ASSIGN(boost::json::object inputs, read_inputs(options.messages));
  STRATA_ASSIGN(const ChatTemplate chat, load(options, inputs));
  STRATA_ASSIGN(const std::vector<RenderedSpan> spans,
                options.join_parts ? chat.render(inputs) : chat.render_verbatim(inputs));
  STRATA_TRY(print(options.as_json ? to_json(spans) + "\n" : jinja::join(spans)));
  return 0;
}

}  // namespace

void add_template(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "template", "Print the prompt that a chat template makes of a conversation");
  command->add_option("source", options->source, "a GGUF model or its name, or a Jinja template")
      ->required();
  command
      ->add_option("--messages", options->messages,
                   "JSON file: messages, tools, add_generation_prompt, other variables, "
                   "bos_token, eos_token, and now (a time) for templates that print the date")
      ->required();
  command->add_flag("--json", options->as_json, "print the text and its spans as JSON");
  command->add_flag("--join-parts", options->join_parts,
                    "adapt the messages to the template as the engine does");
  set_action(*command, exit_code, [options] { return run(*options); });
}

}  // namespace strata::apps
