// strata perplexity: how well a model predicts a text, and how far its logits are from saved ones.
// The text is cut into chunks of --context tokens, each begun with BOS where the model wants one;
// the second half of every chunk is scored, as llama.cpp's tool does it.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "base/printable.h"
#include "base/utf8.h"
#include "commands.h"
#include "evaluation.h"
#include "logits_file.h"
#include "model_stores.h"
#include "options.h"
#include "progress.h"
#include "read_input.h"
#include "say.h"
#include "text/tokenizer/tokenizer.h"

namespace strata::apps {
namespace {

constexpr Bytes kMostTextBytes = 256 * kMiB;
constexpr std::int32_t kDefaultChunk = 512;

struct Options {
  std::string model;
  std::string text_file;
  std::string save;
  std::string against;
  std::int32_t chunks = -1;
  bool as_json = false;
  EngineOptions engine;
};

struct Scores {
  PerplexityScore perplexity;
  PerplexityScore base_perplexity;
  DivergenceScore divergence;
};

// Whole chunks, one after the other.
Result<std::vector<TokenId>> chunked_tokens(const Tokenizer& tokenizer, const Options& options) {
  STRATA_ASSIGN(const std::string text, read_whole(options.text_file, kMostTextBytes));
  if (const std::size_t valid = utf8_valid_bytes(text); valid < text.size()) {
    const auto lines =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(valid), '\n');
    note_wrong_utf8(fmt::format("{}, line {}", printable(options.text_file), lines + 1));
  }
  STRATA_ASSIGN(std::vector<TokenId> tokens,
                tokenizer.encode(text, false, {.add_bos = true, .add_eos = false}));
  const auto length = static_cast<std::size_t>(options.engine.context);
  std::size_t chunks = tokens.size() / length;
  if (chunks == 0)
    return invalid_argument("{} has {} tokens; one chunk takes {}, see --context",
                            printable(options.text_file), tokens.size(), length);
  if (options.chunks > 0) chunks = std::min(chunks, static_cast<std::size_t>(options.chunks));
  tokens.resize(chunks * length);
  if (tokenizer.add_bos())
    for (std::size_t at = 0; at < tokens.size(); at += length)
      tokens[at] = tokenizer.special_ids().bos;
  return tokens;
}

// Takes a chunk's rows in order of position, on the engine's thread.
class ChunkSink : public Sink {
 public:
  using TakeRow = std::function<Status(Position, std::span<const float>)>;
  explicit ChunkSink(TakeRow take) : take_(std::move(take)) {}

  void on_logits(Position position, std::span<const float> row) override {
    if (status_.ok()) status_ = take_(position, row);
  }
  void on_token(std::int32_t, const ChosenToken&) override {}
  void on_finish(std::int32_t, FinishReason, const Status& status) override {
    done_.set_value(status_.ok() ? status : status_);
  }
  Status wait() { return done_.get_future().get(); }

 private:
  TakeRow take_;
  Status status_;
  std::promise<Status> done_;
};

class Evaluation {
 public:
  Evaluation(Engine& engine, const Options& options, std::vector<TokenId> tokens)
      : engine_(engine),
        options_(options),
        tokens_(std::move(tokens)),
        length_(options.engine.context),
        first_(length_ / 2),
        header_{engine.vocabulary(), length_, static_cast<std::int32_t>(tokens_.size()) / length_,
                length_ - 1 - first_} {}

  Result<Scores> run() {
    STRATA_TRY(open_files());
    Progress progress("evaluating");
    for (std::int32_t chunk = 0; chunk < header_.chunks; ++chunk) {
      STRATA_TRY(run_chunk(chunk));
      progress.update(static_cast<std::uint64_t>(chunk) + 1,
                      static_cast<std::uint64_t>(header_.chunks));
    }
    if (writer_) STRATA_TRY(writer_->finish());
    return std::move(scores_);
  }

  const LogitsFileHeader& header() const { return header_; }

 private:
  Status open_files() {
    if (!options_.against.empty()) STRATA_TRY(open_base());
    if (options_.save.empty()) return {};
    STRATA_ASSIGN(writer_, LogitsWriter::create(options_.save, header_, tokens_));
    return {};
  }

  Status open_base() {
    STRATA_ASSIGN(reader_, LogitsReader::open(options_.against));
    STRATA_ASSIGN(const std::vector<TokenId> saved, reader_->tokens());
    if (!(reader_->header() == header_) || saved != tokens_)
      return invalid_argument(
          "{} was saved for other tokens ({} chunks of {}, vocabulary {}); the text, --context, "
          "--chunks and the vocabulary must be the same",
          printable(options_.against), reader_->header().chunks, reader_->header().chunk_tokens,
          reader_->header().vocabulary);
    base_row_.resize(static_cast<std::size_t>(header_.vocabulary));
    return {};
  }

  Status run_chunk(std::int32_t chunk) {
    const auto start = tokens_.begin() + std::ptrdiff_t{chunk} * length_;
    Request request;
    request.tokens.assign(start, start + length_);
    request.max_tokens = 0;
    for (Position p = first_; p < length_ - 1; ++p) request.logit_positions.push_back(p);
    const auto sink =
        std::make_shared<ChunkSink>([this, chunk](Position position, std::span<const float> row) {
          return take(chunk, position, row);
        });
    STRATA_TRY(engine_.submit(std::move(request), sink).status());
    return sink->wait();
  }

  Status take(std::int32_t chunk, Position position, std::span<const float> logits) {
    const ScoredRow row(logits);
    const TokenId next = tokens_[static_cast<std::size_t>(chunk * std::int64_t{length_}) +
                                 static_cast<std::size_t>(position) + 1];
    if (!(row.log_probability(next) <= 0))
      return internal_error("the logits at position {} of chunk {} are not finite", position,
                            chunk + 1);
    scores_.perplexity.add(row.log_probability(next));
    if (writer_) STRATA_TRY(writer_->add(logits));
    if (!reader_) return {};
    STRATA_TRY(reader_->row(std::int64_t{chunk} * header_.rows_per_chunk + (position - first_),
                            base_row_));
    const ScoredRow base(base_row_);
    scores_.base_perplexity.add(base.log_probability(next));
    scores_.divergence.add(base, row);
    return {};
  }

  Engine& engine_;
  const Options& options_;
  const std::vector<TokenId> tokens_;
  const std::int32_t length_;
  const Position first_;  // scored positions start here
  const LogitsFileHeader header_;
  std::optional<LogitsWriter> writer_;
  std::optional<LogitsReader> reader_;
  std::vector<float> base_row_;
  Scores scores_;
};

void print_json(const Options& options, const LogitsFileHeader& header, const Scores& s) {
  fmt::print(R"({{"perplexity": {}, "error": {}, "mean_loss": {}, "tokens": {}, "chunks": {}, )"
             R"("context": {})",
             s.perplexity.value(), s.perplexity.error(), s.perplexity.losses().value(),
             s.perplexity.losses().count(), header.chunks, header.chunk_tokens);
  if (!options.against.empty())
    fmt::print(
        R"(, "base_perplexity": {}, "kl_divergence": {{"mean": {}, "error": {}, "median": {}, )"
        R"("percentile_99": {}, "largest": {}}}, "top_1_agreement": {}, "top_1_error": {})",
        s.base_perplexity.value(), s.divergence.mean().value(), s.divergence.mean().error(),
        s.divergence.quantile(0.5), s.divergence.quantile(0.99), s.divergence.largest(),
        s.divergence.agreement().value(), s.divergence.agreement().error());
  fmt::print("}}\n");
}

void print_text(const Options& options, const LogitsFileHeader& header, const Scores& s) {
  fmt::print("{:<18} {:.4f} +- {:.4f}  ({} tokens scored, {} chunks of {})\n", "perplexity",
             s.perplexity.value(), s.perplexity.error(), s.perplexity.losses().count(),
             header.chunks, header.chunk_tokens);
  if (options.against.empty()) return;
  fmt::print("{:<18} {:.4f} +- {:.4f}\n", "of the saved", s.base_perplexity.value(),
             s.base_perplexity.error());
  fmt::print("{:<18} {:.3e} +- {:.1e}, median {:.3e}, 99 % {:.3e}, largest {:.3e}\n",
             "KL divergence", s.divergence.mean().value(), s.divergence.mean().error(),
             s.divergence.quantile(0.5), s.divergence.quantile(0.99), s.divergence.largest());
  fmt::print("{:<18} {:.3f} +- {:.3f} %\n", "same best token",
             100 * s.divergence.agreement().value(), 100 * s.divergence.agreement().error());
}

Result<int> run(Options options) {
  if (options.engine.context == 0) options.engine.context = kDefaultChunk;
  if (options.engine.context < 4)
    return invalid_argument("--context {} is too short to score anything", options.engine.context);
  if (!options.save.empty()) STRATA_TRY(check_new_file(options.save));
  STRATA_ASSIGN(const std::string path, find_model(options.model));
  STRATA_ASSIGN(ModelManifest manifest, ModelManifest::open(path));
  STRATA_ASSIGN(const auto tokenizer, Tokenizer::create(manifest.metadata()));
  for (const std::string& warning : tokenizer->warnings()) say("warning: {}\n", printable(warning));
  STRATA_ASSIGN(std::vector<TokenId> tokens, chunked_tokens(*tokenizer, options));
  EngineOptions engine_options = options.engine;
  engine_options.logit_rows = engine_options.step_rows;
  STRATA_ASSIGN(const auto engine, Engine::load(std::move(manifest), engine_options, {}));
  Evaluation evaluation(*engine, options, std::move(tokens));
  STRATA_ASSIGN(const Scores scores, evaluation.run());
  (options.as_json ? print_json : print_text)(options, evaluation.header(), scores);
  return 0;
}

}  // namespace

void add_perplexity(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("perplexity", "Measure how well a model predicts a text");
  command->add_option("model", options->model, "GGUF file, or the name of a cached model")
      ->required();
  command->add_option("text", options->text_file, "Text file")->required();
  command->add_option("--chunks", options->chunks, "Evaluate the first so many chunks only")
      ->check(CLI::Range(1, 1 << 24));
  command
      ->add_option("--save-logits", options->save,
                   "Write the scored rows here: 4 bytes per token of the vocabulary and row")
      ->check(refuse_empty);
  command
      ->add_option("--against", options->against,
                   "Compare with the rows that --save-logits wrote for the same text")
      ->check(refuse_empty);
  command->add_flag("--json", options->as_json, "Print one JSON object");
  add_engine_options(*command, options->engine);
  command->footer("--context is the length of a chunk here, 512 unless given.");
  set_action(*command, exit_code, [options] { return run(*options); });
}

}  // namespace strata::apps
