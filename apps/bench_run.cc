#include "bench_run.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <latch>
#include <memory>

#include "sample/random.h"

namespace strata::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostContext = 1 << 28;  // of a context that an engine takes

std::int32_t prompt_tokens(const BenchTest& test) {
  return test.kind == TestKind::kPrompt ? test.tokens : std::max(test.depth, 1);
}

// Steps in which some sequences generate while the prompts of others are still computed.
std::int32_t head_start(const BenchTest& test, std::int32_t step_rows) {
  if (test.sequences == 1) return 0;
  const std::int64_t rows = std::int64_t{test.sequences} * prompt_tokens(test);
  const std::int64_t room = std::max(step_rows - test.sequences, 1);
  const std::int64_t steps = ceil_div(rows, room) + test.sequences;
  return static_cast<std::int32_t>(std::min(steps, kMostContext));
}

// Tokens asked for: the first, the measured ones, and those of the head start.
std::int32_t tokens_to_make(const BenchTest& test, std::int32_t step_rows) {
  return test.kind == TestKind::kPrompt ? 1 : 1 + test.tokens + head_start(test, step_rows);
}

// The stopwatch that the sequences of one run share. Written on the engine's thread; read once
// measured() has returned.
class Watch {
 public:
  explicit Watch(const BenchTest& test)
      : test_(test), made_(static_cast<std::size_t>(test.sequences)) {}

  // A prompt's time starts here.
  void begin() { start_ = Clock::now(); }
  // The engine takes no second step before, so that no sequence is far ahead of the others.
  void all_submitted() { submitted_.count_down(); }

  void prompt_computed(bool whole) {
    submitted_.wait();
    if (whole && test_.kind == TestKind::kPrompt) stop({});
  }

  // Generation counts from the first token of the sequence that has it last, for `tokens` more.
  void token(std::size_t sequence) {
    if (test_.kind == TestKind::kPrompt) return;
    if (++made_[sequence] == 1 && ++started_ == test_.sequences) {
      start_ = Clock::now();
      made_at_start_ = made_;
      last_ = sequence;
    }
    if (started_ == test_.sequences && sequence == last_ && made_[sequence] == 1 + test_.tokens)
      stop({});
  }

  void finish(const Status& status) {
    stop(status.ok() ? internal_error("a sequence of {} ended while it was timed", test_.name())
                     : status);
    if (++ended_ == test_.sequences) all_ended_.set_value();
  }

  Status measured() { return stopped_.get_future().get(); }
  void wait_for_end() { all_ended_.get_future().wait(); }

  double seconds() const { return std::chrono::duration<double>(end_ - start_).count(); }
  // Of a generation: tokens of all sequences while it was timed, and of each one before.
  double tokens() const { return tokens_; }
  const std::vector<std::int32_t>& made_at_start() const { return made_at_start_; }

 private:
  void stop(const Status& status) {
    if (std::exchange(is_stopped_, true)) return;
    end_ = Clock::now();
    for (std::size_t i = 0; i < made_at_start_.size(); ++i) tokens_ += made_[i] - made_at_start_[i];
    stopped_.set_value(status);
  }

  const BenchTest test_;
  std::vector<std::int32_t> made_;
  std::vector<std::int32_t> made_at_start_;
  std::int32_t started_ = 0;
  std::int32_t ended_ = 0;
  std::size_t last_ = 0;
  double tokens_ = 0;
  bool is_stopped_ = false;
  Clock::time_point start_;
  Clock::time_point end_;
  std::latch submitted_{1};
  std::promise<Status> stopped_;
  std::promise<void> all_ended_;
};

class WatchedSink : public Sink {
 public:
  WatchedSink(std::shared_ptr<Watch> watch, std::size_t sequence)
      : watch_(std::move(watch)), sequence_(sequence) {}
  void on_prompt(std::int32_t computed, std::int32_t total) override {
    watch_->prompt_computed(computed == total);
  }
  void on_token(std::int32_t, const ChosenToken&) override { watch_->token(sequence_); }
  void on_finish(std::int32_t, FinishReason, const Status& status) override {
    watch_->finish(status);
  }

 private:
  const std::shared_ptr<Watch> watch_;
  const std::size_t sequence_;
};

// Until the watch has measured; what is still going on is cancelled.
Status run(Engine& engine, std::vector<Request> requests, const std::shared_ptr<Watch>& watch) {
  std::vector<RequestId> ids;
  Status status;
  watch->begin();
  for (std::size_t i = 0; i < requests.size() && status.ok(); ++i) {
    const auto id = engine.submit(std::move(requests[i]), std::make_shared<WatchedSink>(watch, i));
    status = id.status();
    if (id.ok()) ids.push_back(*id);
  }
  watch->all_submitted();
  if (status.ok()) status = watch->measured();
  for (const RequestId id : ids) engine.cancel(id);
  if (ids.size() == requests.size()) watch->wait_for_end();
  return status;
}

}  // namespace

std::int32_t context_of(const BenchTest& test, std::int32_t step_rows) {
  return prompt_tokens(test) + tokens_to_make(test, step_rows) + 1;
}

Request BenchRunner::request(const BenchTest& test) {
  Request request;
  request.sampling.seed = seed_ + prompts_;
  request.max_tokens = tokens_to_make(test, engine_.plan().step.rows);
  const std::uint32_t stream = prompts_++;
  for (std::int32_t i = 0; i < prompt_tokens(test); ++i)
    request.tokens.push_back(static_cast<TokenId>(
        uniform({seed_, stream, static_cast<std::uint32_t>(i)}) * engine_.vocabulary()));
  return request;
}

// Every step but the last is full, and the last one ends in the logits of the first token.
Work BenchRunner::work_of_prompt(const BenchTest& test) const {
  Work work;
  const std::int32_t step_rows = engine_.plan().step.rows;
  for (Position first = 0; first < test.tokens; first += step_rows) {
    const std::int32_t rows = std::min(step_rows, test.tokens - first);
    const SliceShape slice{first, rows, first + rows == test.tokens ? 1 : 0};
    work += work_.step(std::span(&slice, 1));
  }
  return work;
}

Result<Sample> BenchRunner::measure(const BenchTest& test) {
  std::vector<Request> requests;
  for (std::int32_t i = 0; i < test.sequences; ++i) requests.push_back(request(test));
  const auto watch = std::make_shared<Watch>(test);
  STRATA_TRY(run(engine_, std::move(requests), watch));
  Sample sample{watch->seconds(), static_cast<double>(test.tokens), {}};
  if (test.kind == TestKind::kPrompt) {
    sample.work = work_of_prompt(test);
    return sample;
  }
  sample.tokens = watch->tokens();
  for (std::int32_t step = 0; step < test.tokens; ++step) {
    std::vector<SliceShape> slices;
    // The newest known token is what a step computes.
    for (const std::int32_t made : watch->made_at_start())
      slices.push_back({prompt_tokens(test) + made - 1 + step, 1, 1});
    sample.work += work_.step(slices);
  }
  return sample;
}

}  // namespace strata::apps
