// strata tokenize and strata detokenize: text to tokens and back, with a model's vocabulary.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <charconv>
#include <cstdio>
#include <memory>

#include "base/printable.h"
#include "commands.h"
#include "gguf/gguf_file.h"
#include "model_stores.h"
#include "read_input.h"
#include "say.h"
#include "text/tokenizer/detokenizer.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text;
  bool no_bos = false;
  bool no_special = false;
  bool as_json = false;
};

struct DetokenizeOptions {
  std::string model;
  std::vector<std::string> ids;
  bool no_special = false;
  bool as_json = false;
};

Result<std::unique_ptr<const Tokenizer>> open_tokenizer(const std::string& model) {
  STRATA_ASSIGN(const std::string path, find_model(model));
  STRATA_ASSIGN(const GgufFile file, GgufFile::open(path));
  auto tokenizer = Tokenizer::create(file.metadata());
  if (!tokenizer.ok()) return tokenizer.status().with_context(printable(model));
  for (const std::string& warning : tokenizer.value()->warnings()) say("warning: {}\n", warning);
  return tokenizer;
}

Status tokenize(const TokenizeOptions& options) {
  STRATA_ASSIGN(const std::unique_ptr<const Tokenizer> tokenizer, open_tokenizer(options.model));
  STRATA_ASSIGN(const std::string text, options.text ? *options.text : read_standard_input());
  STRATA_ASSIGN(const std::vector<TokenId> ids,
                tokenizer->encode(text, !options.no_special, {.add_bos = !options.no_bos}));
  if (options.as_json) {
    fmt::print("{}\n",
               json::serialize(json::object{{"tokens", json::array(ids.begin(), ids.end())}}));
    return {};
  }
  for (const TokenId id : ids)
    fmt::print("{:>7}  {}\n", id, printable(tokenizer->token_bytes(id, true)));
  return {};
}

Result<TokenId> parse_id(std::string_view text) {
  TokenId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid_argument("`{}` is not a token id", printable(text, 32));
  return id;
}

// Ids between blanks and commas; brackets, and what `tokenize --json` writes, are welcome.
Result<std::vector<TokenId>> parse_ids(std::string_view text) {
  constexpr std::string_view kTokensField = "{\"tokens\":";
  constexpr std::string_view kSeparators = " \t\r\n,[]";
  if (text.starts_with(kTokensField)) {
    text.remove_prefix(kTokensField.size());
    text = text.substr(0, text.rfind('}'));
  }
  std::vector<TokenId> ids;
  for (std::size_t at = text.find_first_not_of(kSeparators); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    STRATA_ASSIGN(const TokenId id, parse_id(text.substr(at, end - at)));
    ids.push_back(id);
    at = text.find_first_not_of(kSeparators, end);
  }
  return ids;
}

// Leaves out the tokens that tokenize adds on its own, so that its input comes back.
std::span<const TokenId> without_added(std::span<const TokenId> ids, const Tokenizer& tokenizer) {
  const SpecialIds& special = tokenizer.special_ids();
  if (tokenizer.add_bos() && !ids.empty() && ids.front() == special.bos) ids = ids.subspan(1);
  if (tokenizer.add_eos() && !ids.empty() && ids.back() == special.eos)
    ids = ids.first(ids.size() - 1);
  return ids;
}

Status detokenize(const DetokenizeOptions& options) {
  STRATA_ASSIGN(const std::unique_ptr<const Tokenizer> tokenizer, open_tokenizer(options.model));
  STRATA_ASSIGN(const std::string list, options.ids.empty()
                                            ? read_standard_input()
                                            : fmt::format("{}", fmt::join(options.ids, " ")));
  STRATA_ASSIGN(const std::vector<TokenId> ids, parse_ids(list));
  const std::span<const TokenId> given = without_added(ids, *tokenizer);
  const DecodeOptions decoding{.include_special = !options.no_special};
  STRATA_ASSIGN(const std::string text, tokenizer->decode(given, decoding));
  if (!options.as_json) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  }
  Detokenizer stream(*tokenizer, decoding);
  std::string shown;
  for (const TokenId id : given) shown += stream.push(id);
  shown += stream.finish(Detokenizer::End::kComplete);
  fmt::print("{}\n", json::serialize(json::object{{"text", shown}}));
  return {};
}

void finish(const Status& status, int& exit_code) {
  if (status.ok()) return;
  say("error: {}\n", printable(status.message(), 4096));
  exit_code = 1;
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("tokenize", "Turn text into a model's tokens");
  const auto options = std::make_shared<TokenizeOptions>();
  command->add_option("model", options->model, "GGUF file, or the name of a cached model")
      ->required();
  command->add_option("text", options->text, "The text; else standard input, byte for byte");
  command->add_flag("--no-bos", options->no_bos, "Add no BOS token, whatever the file says");
  command->add_flag("--no-special", options->no_special,
                    "Take the texts of control tokens as plain text");
  command->add_flag("--json", options->as_json, "Print {\"tokens\": [...]}");
  command->callback([options, &exit_code] { finish(tokenize(*options), exit_code); });
}

void add_detokenize(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("detokenize", "Turn a model's tokens into text");
  const auto options = std::make_shared<DetokenizeOptions>();
  command->add_option("model", options->model, "GGUF file, or the name of a cached model")
      ->required();
  command->add_option("ids", options->ids, "Token ids; else from standard input");
  command->add_flag("--no-special", options->no_special, "Leave control tokens out");
  command->add_flag("--json", options->as_json,
                    "Print {\"text\": ...}, with U+FFFD for bytes that are not UTF-8");
  command->callback([options, &exit_code] { finish(detokenize(*options), exit_code); });
}

}  // namespace strata::apps
