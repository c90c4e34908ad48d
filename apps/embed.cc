// strata embed: texts as vectors, for search and comparison, or pairs of texts as scores. All texts
// share the engine's steps; none changes another's embedding.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/printable.h"
#include "commands.h"
#include "engine/pooling.h"
#include "model_stores.h"
#include "options.h"
#include "say.h"
#include "text/tokenizer/tokenizer.h"
#include "text_pair.h"

namespace strata::apps {
namespace {

constexpr std::size_t kTextsAtOnce = 256;  // one where every token's vector is kept
constexpr std::int32_t kAllRows = 65536;   // deliver as many hidden states as a step has rows

struct Options {
  std::string model;
  std::vector<std::string> texts;
  std::optional<Pooling> pooling;
  bool no_normalize = false;
  bool as_json = false;
  EngineOptions engine;
};

Result<std::vector<std::vector<TokenId>>> tokenize(const Tokenizer& tokenizer,
                                                   const Metadata& metadata, bool pairs,
                                                   std::vector<std::string> texts) {
  if (texts.empty())
    for (std::string line; std::getline(std::cin, line);) texts.push_back(std::move(line));
  if (texts.empty())
    return invalid_argument("no text is given: name some after the model, or pipe them in by line");
  std::vector<std::vector<TokenId>> all;
  for (const std::string& text : texts) {
    auto tokens = pairs ? encode_pair(tokenizer, metadata, text) : tokenizer.encode(text, false);
    if (!tokens.ok()) return tokens.status().with_context(fmt::format("text {}", all.size() + 1));
    if (tokens->empty())
      return invalid_argument("text {} has no tokens, so that it has no embedding", all.size() + 1);
    all.push_back(std::move(tokens).value());
  }
  return all;
}

// Pools one text's hidden states as they come, on the engine's thread.
class TextSink : public Sink {
 public:
  explicit TextSink(Pooling pooling) : pooler_(pooling) {}

  void on_logits(Position, std::span<const float> row) override { pooler_.add(row); }
  void on_token(std::int32_t, TokenId) override {}
  void on_finish(std::int32_t, FinishReason, const Status& status) override {
    done_.set_value(status);
  }

  Result<std::vector<std::vector<float>>> wait(bool normalize) {
    STRATA_TRY(done_.get_future().get());
    return pooler_.finish(normalize);
  }

 private:
  Pooler pooler_;
  std::promise<Status> done_;
};

class Embedder {
 public:
  Embedder(Engine& engine, const Options& options, Pooling pooling)
      : engine_(engine), options_(options), pooling_(pooling) {}

  Status run(std::span<const std::vector<TokenId>> texts) {
    const std::size_t at_once = pooling_ == Pooling::kNone ? 1 : kTextsAtOnce;
    for (std::size_t first = 0; first < texts.size(); first += at_once)
      STRATA_TRY(embed(texts, first, std::min(first + at_once, texts.size())));
    if (options_.as_json) {
      std::vector<std::size_t> lengths;
      for (const auto& tokens : texts) lengths.push_back(tokens.size());
      return print(fmt::format("], \"tokens\": [{}], \"pooling\": \"{}\"}}\n",
                               fmt::join(lengths, ", "), to_string(pooling_)));
    }
    return {};
  }

 private:
  static Status of_text(std::size_t index, const Status& status) {
    return status.with_context(fmt::format("text {}", index + 1));
  }

  Status embed(std::span<const std::vector<TokenId>> texts, std::size_t first, std::size_t last) {
    std::vector<std::shared_ptr<TextSink>> sinks;
    for (std::size_t i = first; i < last; ++i) {
      Request request;
      request.tokens = texts[i];
      request.max_tokens = 0;
      request.logit_positions =
          pooled_positions(pooling_, static_cast<Position>(request.tokens.size()));
      sinks.push_back(std::make_shared<TextSink>(pooling_));
      STRATA_TRY(of_text(i, engine_.submit(std::move(request), sinks.back()).status()));
    }
    for (std::size_t i = first; i < last; ++i) {
      const bool normalize = !options_.no_normalize && pooling_ != Pooling::kRank;
      const auto rows = sinks[i - first]->wait(normalize);
      STRATA_TRY(of_text(i, rows.status()));
      STRATA_TRY(print(text_of(*rows, i == 0)));
    }
    return {};
  }

  // The shortest digits that read back as the same floats.
  std::string text_of(const std::vector<std::vector<float>>& rows, bool is_first) const {
    const bool scores = pooling_ == Pooling::kRank, nested = pooling_ == Pooling::kNone;
    std::vector<std::string> lists;
    for (const auto& row : rows)
      lists.push_back(!options_.as_json ? fmt::format("{}\n", fmt::join(row, " "))
                      : scores          ? fmt::format("{}", row.front())
                                        : fmt::format("[{}]", fmt::join(row, ", ")));
    if (!options_.as_json) return fmt::format("{}", fmt::join(lists, ""));
    const std::string start =
        is_first ? fmt::format("{{\"{}\": [", scores ? "scores" : "embeddings") : ", ";
    return fmt::format("{}{}{}{}", start, nested ? "[" : "", fmt::join(lists, ", "),
                       nested ? "]" : "");
  }

  Engine& engine_;
  const Options& options_;
  const Pooling pooling_;
};

// What the command asks for, else what the file says; nothing where both are silent.
Result<std::optional<Pooling>> choose_pooling(const ModelManifest& manifest,
                                              std::optional<Pooling> wanted) {
  STRATA_ASSIGN(const std::optional<Pooling> own, read_pooling(manifest));
  if (own == Pooling::kRank && wanted)
    return invalid_argument(
        "the model scores pairs of texts, for which there is no --pooling to choose");
  return wanted ? wanted : own;
}

// Room for the longest text, and for as many of its length as a step has rows.
EngineOptions engine_options(const Options& options, bool scores,
                             std::span<const std::vector<TokenId>> texts) {
  EngineOptions engine = options.engine;
  engine.output = scores ? EngineOutput::kScores : EngineOutput::kHidden;
  engine.logit_rows = kAllRows;
  std::size_t longest = 0;
  for (const auto& tokens : texts) longest = std::max(longest, tokens.size());
  if (engine.context == 0) engine.context = static_cast<std::int32_t>(longest);
  const auto fitting = static_cast<std::size_t>(engine.step_rows) / longest;
  engine.sequences = static_cast<std::int32_t>(std::clamp<std::size_t>(fitting, 1, texts.size()));
  return engine;
}

Result<int> run(const Options& options) {
  STRATA_ASSIGN(const std::string path, find_model(options.model));
  STRATA_ASSIGN(ModelManifest manifest, ModelManifest::open(path));
  STRATA_ASSIGN(std::optional<Pooling> pooling, choose_pooling(manifest, options.pooling));
  const bool scores = pooling == Pooling::kRank;
  auto tokenizer = Tokenizer::create(manifest.metadata());
  if (!tokenizer.ok()) return tokenizer.status().with_context(printable(path));
  for (const auto warnings : {manifest.file().warnings(), (*tokenizer)->warnings()})
    for (const std::string& warning : warnings) say("warning: {}\n", printable(warning));
  STRATA_ASSIGN(const auto texts,
                tokenize(**tokenizer, manifest.metadata(), scores, options.texts));
  STRATA_ASSIGN(const auto engine,
                Engine::load(std::move(manifest), engine_options(options, scores, texts), {}));
  for (const std::string& note : engine->plan().notes) say("note: {}\n", note);
  if (!pooling) {
    pooling = default_pooling(engine->causal());
    say("note: the file names no pooling: taking {}; --pooling chooses another\n",
        to_string(*pooling));
  }
  STRATA_TRY(Embedder(*engine, options, *pooling).run(texts));
  return 0;
}

}  // namespace

void add_embed(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("embed", "Print texts as vectors, or pairs of texts as scores");
  command->add_option("model", options->model, "GGUF file, or the name of a cached model")
      ->required();
  command->add_option("text", options->texts,
                      "Texts; without any, the lines of standard input. Where the model scores "
                      "pairs: a query and a document, with a tab in between");
  command
      ->add_option_function<std::string>(
          "--pooling",
          [options](const std::string& name) { options->pooling = pooling_by_name(name); },
          "How the tokens' vectors make the text's: mean, cls (the first's), last, or none, one "
          "for each token (default: as the file says)")
      ->check(CLI::IsMember({"none", "mean", "cls", "last"}));
  command->add_flag("--no-normalize", options->no_normalize,
                    "Print vectors as computed instead of dividing each by its length");
  command->add_flag("--json", options->as_json,
                    "Print one JSON object: embeddings or scores, tokens (how many) and pooling");
  add_engine_options(*command, options->engine);
  command->footer("--context is the length of the longest text unless given.");
  set_action(*command, exit_code, [options] { return run(*options); });
}

}  // namespace strata::apps
