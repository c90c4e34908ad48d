// strata logits: what a model computes for given tokens, for developers of models and of Strata.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/printable.h"
#include "commands.h"
#include "model_stores.h"
#include "options.h"
#include "read_input.h"
#include "say.h"

namespace strata::apps {
namespace {

constexpr std::size_t kMostSequencesAtOnce = 8;

struct Options {
  std::string model;
  std::string tokens;
  std::string tokens_file;
  std::string positions;
  std::string output;
  std::int32_t greedy = 0;
  bool as_json = false;
  EngineOptions engine;
};

struct Sequence {
  std::vector<TokenId> tokens;
  std::vector<Position> positions;  // whose logits are wanted, ascending
};

template <typename T>
Result<std::vector<T>> parse_numbers(std::string_view text, std::string_view what) {
  constexpr std::string_view kSeparators = " ,\t\r\n";
  std::vector<T> numbers;
  for (std::size_t at = text.find_first_not_of(kSeparators); at != std::string_view::npos;
       at = text.find_first_not_of(kSeparators, at)) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    T value{};
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, value);
    if (error != std::errc() || stop != text.data() + end)
      return invalid_argument("{}: '{}' is no whole number of at most {}", what,
                              printable(text.substr(at, end - at), 32),
                              std::numeric_limits<T>::max());
    numbers.push_back(value);
    at = end;
  }
  return numbers;
}

Result<std::vector<Position>> positions_of(const Options& options, std::size_t length) {
  std::vector<Position> positions;
  if (options.positions == "all") {
    for (std::size_t p = 0; p < length; ++p) positions.push_back(static_cast<Position>(p));
    return positions;
  }
  if (options.positions.find("all") != std::string::npos)
    return invalid_argument("--positions takes either all or numbers such as 0,2, not '{}'",
                            printable(options.positions, 32));
  STRATA_ASSIGN(positions, parse_numbers<Position>(options.positions, "--positions"));
  for (const Position position : positions)
    if (position < 0 || position >= static_cast<Position>(length))
      return invalid_argument(
          "--positions: {} is outside the {} tokens, whose positions are 0 to {}", position, length,
          length - 1);
  std::ranges::sort(positions);
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

Result<std::vector<Sequence>> read_sequences(const Options& options) {
  std::vector<Sequence> sequences;
  const auto add = [&](std::string_view text, const std::string& where) -> Status {
    STRATA_ASSIGN(auto tokens, parse_numbers<TokenId>(text, where));
    if (tokens.empty()) return {};
    STRATA_ASSIGN(auto positions, positions_of(options, tokens.size()));
    sequences.push_back({std::move(tokens), std::move(positions)});
    return {};
  };
  if (!options.tokens.empty()) {
    STRATA_TRY(add(options.tokens, "--tokens"));
  } else if (!options.tokens_file.empty()) {
    STRATA_ASSIGN(const std::string text, read_whole(options.tokens_file));
    for (const std::string_view line : lines_of(text)) STRATA_TRY(add(line, options.tokens_file));
  }
  if (sequences.empty())
    return invalid_argument("no tokens are given; use --tokens \"1 2 3\" or --tokens-file FILE");
  return sequences;
}

// From any thread; `bytes` go to `offset` whatever was written before.
Status write_at(const File& file, Bytes offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      return io_error("cannot write {}: {}", printable(file.path()), std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<Bytes>(written);
  }
  return {};
}

// Receives one sequence's rows; they arrive in order of position.
class Receiver : public Sink {
 public:
  using RowTaker = std::function<Status(Position, std::span<const float>)>;
  explicit Receiver(RowTaker take) : take_(std::move(take)) {}

  void on_logits(Position position, std::span<const float> logits) override {
    if (!status_.ok()) return;
    const bool finite = std::ranges::all_of(logits, [](float x) { return std::isfinite(x); });
    status_ = finite ? take_(position, logits)
                     : internal_error("the logits at position {} are not finite", position);
  }
  void on_token(std::int32_t, const ChosenToken& token) override { generated.push_back(token.id); }
  void on_finish(std::int32_t, FinishReason reason, const Status& status) override {
    if (status_.ok()) status_ = status;
    if (reason == FinishReason::kContext)
      status_ = invalid_argument(
          "the context is full after {} of the greedy tokens; ask for a "
          "larger --context",
          generated.size());
    done_.set_value(status_);
  }
  Status wait() { return done_.get_future().get(); }

  std::vector<TokenId> generated;

 private:
  RowTaker take_;
  Status status_;
  std::promise<Status> done_;
};

// Asks for one sequence; wait() on the receiver ends it.
Result<std::shared_ptr<Receiver>> submit(Engine& engine, const Options& options,
                                         const Sequence& sequence, Receiver::RowTaker take) {
  Request request;
  request.tokens = sequence.tokens;
  request.sampling.temperature = 0;
  request.max_tokens = options.greedy;
  request.logit_positions = sequence.positions;
  auto receiver = std::make_shared<Receiver>(std::move(take));
  STRATA_TRY(engine.submit(std::move(request), receiver).status());
  return receiver;
}

// Raw little-endian f32 rows, in order of line and position, of sequences that run together.
Status write_rows(Engine& engine, const Options& options, std::span<const Sequence> sequences) {
  STRATA_ASSIGN(File out, create_output(options.output));
  std::vector<std::shared_ptr<Receiver>> receivers;
  Bytes offset = 0;
  Status status;
  for (const Sequence& sequence : sequences) {
    auto receiver = submit(engine, options, sequence,
                           [&out, at = offset](Position, std::span<const float> row) mutable {
                             const Bytes start = std::exchange(at, at + row.size_bytes());
                             return write_at(out, start, std::as_bytes(row));
                           });
    offset += sequence.positions.size() * static_cast<Bytes>(engine.vocabulary()) * sizeof(float);
    if (!receiver.ok()) {
      status = receiver.status();
      break;
    }
    receivers.push_back(*receiver);
  }
  for (const auto& receiver : receivers)
    if (const Status ended = receiver->wait(); status.ok()) status = ended;
  STRATA_TRY(status);
  for (const auto& receiver : receivers)
    if (options.greedy > 0)
      STRATA_TRY(
          print(fmt::format("{{\"greedy\": [{}]}}\n", fmt::join(receiver->generated, ", "))));
  return out.close();
}

// One object per sequence. Written by hand: shortest digits that read back as the same float.
Status print_json(Engine& engine, const Options& options, std::span<const Sequence> sequences) {
  for (const Sequence& sequence : sequences) {
    std::string text = "{\"logits\": {";
    bool first = true;
    STRATA_ASSIGN(
        const auto receiver,
        submit(engine, options, sequence, [&](Position position, std::span<const float> row) {
          text += fmt::format("{}\"{}\": [{}]", first ? "" : ", ", position,
                              fmt::join(row.begin(), row.end(), ", "));
          first = false;
          return Status();
        }));
    STRATA_TRY(receiver->wait());
    text += fmt::format("}}, \"greedy\": [{}]}}\n", fmt::join(receiver->generated, ", "));
    STRATA_TRY(print(text));
  }
  return {};
}

Result<int> run(Options options) {
  if (options.positions.find_first_not_of(" ,") == std::string::npos && options.greedy == 0)
    return invalid_argument("nothing is asked for; name --positions, --greedy or both");
  if (!options.output.empty()) STRATA_TRY(check_new_file(options.output));
  STRATA_ASSIGN(const auto sequences, read_sequences(options));
  std::size_t longest = 0;
  for (const Sequence& sequence : sequences) longest = std::max(longest, sequence.tokens.size());
  if (options.engine.context == 0)
    options.engine.context = static_cast<std::int32_t>(longest) + std::max(options.greedy, 1);
  options.engine.logit_rows = std::min(options.engine.step_rows, 32);
  options.engine.queue = std::max(options.engine.queue, sequences.size());
  if (!options.output.empty())
    options.engine.sequences =
        static_cast<std::int32_t>(std::min(sequences.size(), kMostSequencesAtOnce));
  STRATA_ASSIGN(const std::string path, find_model(options.model));
  STRATA_ASSIGN(const auto engine, Engine::load(path, options.engine, {}));
  STRATA_TRY(options.output.empty() ? print_json(*engine, options, sequences)
                                    : write_rows(*engine, options, sequences));
  return 0;
}

}  // namespace

void add_logits(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("logits", "Print the logits a model computes for tokens");
  command->add_option("model", options->model, "GGUF file, or the name of a cached model")
      ->required();
  auto* tokens = command->add_option("--tokens", options->tokens,
                                     "Token ids, e.g. \"1 2 3\"; nothing is added to them");
  command->add_option("--tokens-file", options->tokens_file, "File of ids, one sequence per line")
      ->check(refuse_empty)
      ->excludes(tokens);
  command->add_option("--positions", options->positions,
                      "Positions whose logits are wanted, e.g. 0,2, or all");
  command->add_option("--greedy", options->greedy, "Tokens to generate, always the largest logit")
      ->check(CLI::Range(0, 1 << 24));
  command
      ->add_option("--output,-o", options->output,
                   "Write raw little-endian f32 rows here instead of JSON")
      ->check(refuse_empty);
  command->add_flag("--json", options->as_json, "JSON, which is the default");
  add_engine_options(*command, options->engine);
  set_action(*command, exit_code, [options] { return run(*options); });
}

}  // namespace strata::apps
