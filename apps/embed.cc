// strata embed: texts as vectors, for search and comparison, or pairs of texts as scores. All texts
// share the engine's steps; none changes another's embedding.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/printable.h"
#include "base/utf8.h"
#include "commands.h"
#include "engine/pooling.h"
#include "model_stores.h"
#include "models/all.h"
#include "options.h"
#include "progress.h"
#include "read_input.h"
#include "say.h"
#include "text/tokenizer/tokenizer.h"
#include "text_pair.h"

namespace strata::apps {
namespace {

constexpr std::size_t kTextsAtOnce = 256;  // one where every token's vector is kept
constexpr std::int32_t kAllRows = 65536;   // deliver as many hidden states as a step has rows
constexpr std::int32_t kMostContext = 1 << 28;
constexpr std::chrono::milliseconds kProgressInterval{100};

struct Options {
  std::string model;
  std::vector<std::string> texts;
  std::optional<Pooling> pooling;
  bool no_normalize = false;
  bool as_json = false;
  EngineOptions engine;
};

struct Texts {
  std::string_view unit;  // what the user calls one: "line" or "text"
  std::vector<std::vector<TokenId>> tokens;

  std::string name(std::size_t index) const { return fmt::format("{} {}", unit, index + 1); }
  std::string names(std::span<const std::size_t> indices) const {  // REQUIRES: not empty
    const std::string first = name(indices.front());
    return indices.size() == 1 ? first : fmt::format("{} and {} more", first, indices.size() - 1);
  }
  std::size_t longest() const {  // its index; REQUIRES: not empty
    const auto found = std::ranges::max_element(tokens, {}, &std::vector<TokenId>::size);
    return static_cast<std::size_t>(found - tokens.begin());
  }
  Status check_lengths(std::int64_t most, std::string_view reason) const {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (std::ssize(tokens[i]) > most)
        return invalid_argument("{} has {} tokens, but {} {}", name(i), tokens[i].size(), reason,
                                most);
    return {};
  }
};

// Where the command line names no texts: the lines of standard input.
Result<std::vector<std::string>> read_lines() {
  STRATA_ASSIGN(const std::string input, read_standard_input());
  const std::vector<std::string_view> lines = lines_of(input);
  if (lines.empty())
    return invalid_argument("no text is given: name some after the model, or pipe them in by line");
  return std::vector<std::string>(lines.begin(), lines.end());
}

// `unit`: what the user calls a text.
Result<Texts> tokenize(const Tokenizer& tokenizer, const Metadata& metadata, bool pairs,
                       std::string_view unit, std::span<const std::string> texts) {
  Texts all{unit, {}};
  std::vector<std::size_t> not_utf8, empty;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto tokens =
        pairs ? encode_pair(tokenizer, metadata, texts[i]) : tokenizer.encode(texts[i], false);
    if (!tokens.ok()) return tokens.status().with_context(all.name(i));
    if (utf8_valid_bytes(texts[i]) < texts[i].size()) not_utf8.push_back(i);
    if (tokens->empty()) empty.push_back(i);
    all.tokens.push_back(std::move(*tokens));
  }
  if (!empty.empty())
    return invalid_argument("{}: no tokens, so that there is no embedding; leave out blank {}s",
                            all.names(empty), all.unit);
  if (!not_utf8.empty()) note_wrong_utf8(all.names(not_utf8));
  return all;
}

// Pools one text's hidden states as they come, on the engine's thread.
class TextSink : public Sink {
 public:
  explicit TextSink(Pooling pooling) : pooler_(pooling) {}

  void on_logits(Position, std::span<const float> row) override { pooler_.add(row); }
  void on_prompt(std::int32_t computed, std::int32_t) override { computed_ = computed; }
  void on_token(std::int32_t, const ChosenToken&) override {}
  void on_finish(std::int32_t, FinishReason, const Status& status) override {
    done_.set_value(status);
  }

  std::int32_t computed() const { return computed_; }  // tokens so far
  bool ends_within(std::chrono::milliseconds time) const {
    return ended_.wait_for(time) == std::future_status::ready;
  }
  // Waits for the end.
  Result<std::vector<std::vector<float>>> rows(bool normalize) {
    STRATA_TRY(ended_.get());
    return pooler_.finish(normalize);
  }

 private:
  Pooler pooler_;
  std::atomic<std::int32_t> computed_ = 0;
  std::promise<Status> done_;
  std::future<Status> ended_ = done_.get_future();
};

class Embedder {
 public:
  Embedder(Engine& engine, const Options& options, Pooling pooling, const Texts& texts)
      : engine_(engine), options_(options), pooling_(pooling), texts_(texts) {
    for (const auto& tokens : texts.tokens) total_ += tokens.size();
  }

  Status run() {
    const std::size_t at_once = pooling_ == Pooling::kNone ? 1 : kTextsAtOnce;
    const std::size_t count = texts_.tokens.size();
    for (std::size_t first = 0; first < count; first += at_once)
      STRATA_TRY(embed(first, std::min(first + at_once, count)));
    if (options_.as_json) {
      std::vector<std::size_t> lengths;
      for (const auto& tokens : texts_.tokens) lengths.push_back(tokens.size());
      return print(fmt::format("], \"tokens\": [{}], \"pooling\": \"{}\"}}\n",
                               fmt::join(lengths, ", "), to_string(pooling_)));
    }
    return {};
  }

 private:
  Status embed(std::size_t first, std::size_t last) {
    std::vector<std::shared_ptr<TextSink>> sinks;
    for (std::size_t i = first; i < last; ++i) {
      Request request;
      request.tokens = texts_.tokens[i];
      request.max_tokens = 0;
      request.logit_positions =
          pooled_positions(pooling_, static_cast<Position>(request.tokens.size()));
      sinks.push_back(std::make_shared<TextSink>(pooling_));
      const Status status = engine_.submit(std::move(request), sinks.back()).status();
      STRATA_TRY(status.with_context(texts_.name(i)));
    }
    for (std::size_t i = first; i < last; ++i) {
      TextSink& sink = *sinks[i - first];
      while (!sink.ends_within(kProgressInterval)) show_progress(sinks);
      const auto rows = sink.rows(!options_.no_normalize && pooling_ != Pooling::kRank);
      STRATA_TRY(rows.status().with_context(texts_.name(i)));
      progress_.clear();
      STRATA_TRY(print(text_of(*rows, i == 0)));
    }
    for (std::size_t i = first; i < last; ++i) before_ += texts_.tokens[i].size();
    return {};
  }

  void show_progress(std::span<const std::shared_ptr<TextSink>> sinks) {
    std::uint64_t done = before_;
    for (const auto& sink : sinks) done += static_cast<std::uint64_t>(sink->computed());
    progress_.update(done, total_);
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
  const Texts& texts_;
  std::uint64_t total_ = 0;   // tokens of all texts
  std::uint64_t before_ = 0;  // of those, in earlier rounds
  Progress progress_{"embedding"};
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

// Refuses what the model cannot take before anything is loaded.
Status check_texts(const Texts& texts, const Graph& graph, const Options& options,
                   Pooling pooling) {
  if (graph.max_positions > 0)
    STRATA_TRY(texts.check_lengths(graph.max_positions, "the model's limit of positions is"));
  if (options.engine.context > 0)
    STRATA_TRY(texts.check_lengths(options.engine.context, "--context is"));
  const bool reads_all = pooling == Pooling::kMean || pooling == Pooling::kNone;
  if (!graph.causal && reads_all)
    STRATA_TRY(texts.check_lengths(kAllRows, "an encoder's limit with this pooling is"));
  return texts.check_lengths(kMostContext, "the limit is");
}

// Room for the longest text, and for as many of its length as a step has rows.
EngineOptions engine_options(const Options& options, bool scores, const Texts& texts) {
  EngineOptions engine = options.engine;
  engine.output = scores ? EngineOutput::kScores : EngineOutput::kHidden;
  engine.logit_rows = kAllRows;
  const std::size_t longest = texts.tokens[texts.longest()].size();
  if (engine.context == 0) engine.context = static_cast<std::int32_t>(longest);
  const auto fitting = static_cast<std::size_t>(engine.step_rows) / longest;
  engine.sequences =
      static_cast<std::int32_t>(std::clamp<std::size_t>(fitting, 1, texts.tokens.size()));
  return engine;
}

Result<int> run(Options options) {
  STRATA_ASSIGN(const std::string path, find_model(options.model));
  const std::string_view unit = options.texts.empty() ? "line" : "text";
  // Before the model's file is open, which would take the place of a closed standard input.
  if (options.texts.empty()) {
    STRATA_ASSIGN(options.texts, read_lines());
  }
  STRATA_ASSIGN(ModelManifest manifest, ModelManifest::open(path));
  STRATA_ASSIGN(std::optional<Pooling> pooling, choose_pooling(manifest, options.pooling));
  auto tokenizer = Tokenizer::create(manifest.metadata());
  if (!tokenizer.ok()) return tokenizer.status().with_context(printable(path));
  for (const auto warnings : {manifest.file().warnings(), (*tokenizer)->warnings()})
    for (const std::string& warning : warnings) say("warning: {}\n", printable(warning));
  STRATA_ASSIGN(const Graph graph, build_graph(manifest));
  if (!pooling) {
    pooling = default_pooling(graph.causal);
    say("note: the file names no pooling: taking {}; --pooling chooses another\n",
        to_string(*pooling));
  }
  const bool scores = pooling == Pooling::kRank;
  STRATA_ASSIGN(const Texts texts,
                tokenize(**tokenizer, manifest.metadata(), scores, unit, options.texts));
  STRATA_TRY(check_texts(texts, graph, options, *pooling));
  auto loaded = Engine::load(std::move(manifest), engine_options(options, scores, texts), {});
  if (loaded.status().code() == StatusCode::kResourceExhausted && options.engine.context == 0)
    return loaded.status().with_context(fmt::format("{}, the longest, has {} tokens",
                                                    texts.name(texts.longest()),
                                                    texts.tokens[texts.longest()].size()));
  STRATA_ASSIGN(const auto engine, std::move(loaded));
  for (const std::string& note : engine->plan().notes) say("note: {}\n", note);
  STRATA_TRY(texts.check_lengths(engine->context(), "the memory budget leaves a context of"));
  STRATA_TRY(Embedder(*engine, options, *pooling, texts).run());
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
