#include "bench_serve_load.h"

#include <algorithm>
#include <cmath>

namespace strata::apps {
namespace {

class LoadRun {
 public:
  LoadRun(ServeAsker& asker, const WordList& words, const LoadOptions& options)
      : asker_(asker), words_(words), options_(options) {}

  LoadResult run() {
    asker_.begin();
    if (options_.burst > 0) after(options_.burst_after, [this] { start_burst(); });
    if (options_.rate > 0)
      await_arrival();
    else
      for (std::int32_t user = 0; user < options_.users; ++user) ask_next(0);
    asker_.client().run();
    return std::move(result_);
  }

 private:
  // A time looked at, not a timer, which would keep a load that has nothing more to ask.
  bool may_ask(double time) const {
    return !stopped_ && (options_.requests == 0 || asked_ < options_.requests) &&
           (options_.seconds == 0 || time < options_.seconds);
  }

  void after(double seconds, std::function<void()> work) {
    const auto time = std::chrono::duration_cast<ServeAsker::Clock::duration>(
        std::chrono::duration<double>(seconds));
    asker_.client().at(asker_.started() + time, std::move(work));
  }

  void ask_next(double time) {
    if (!may_ask(time)) return;
    ask(false, asked_++, [this](ServeRecord record) {
      keep(std::move(record));
      if (options_.rate == 0) ask_next(asker_.now());
    });
  }

  // The index-th of its group, which is the same for the same seed.
  void ask(bool burst, std::int32_t index, ServeAsker::Take done) {
    const bool repeats = options_.distinct > 0 && !burst;
    const auto number = static_cast<std::uint64_t>(repeats ? index % options_.distinct : index);
    Draws draws(options_.seed, burst ? Draws::Use::kBurst : Draws::Use::kPrompt, number);
    const std::int32_t prompt = (burst ? options_.burst_prompt : options_.prompt).draw(draws);
    const std::int32_t answer = (burst ? options_.burst_answer : options_.answer).draw(draws);
    std::string text;
    if (options_.shared_prefix > 0) {
      Draws shared(options_.seed, Draws::Use::kPrefix, 0);
      text = words_.text(shared, options_.shared_prefix) + ' ';
    }
    const char* const group = burst ? "burst" : options_.burst > 0 ? "steady" : "all";
    asker_.ask(group, {{"user", text + words_.text(draws, prompt)}}, answer, std::move(done));
  }

  void keep(ServeRecord record) {
    record.text = {};  // which only conversations need
    result_.records.push_back(std::move(record));
  }

  void await_arrival() {
    Draws gap(options_.seed, Draws::Use::kArrival, static_cast<std::uint64_t>(asked_));
    next_arrival_ -= std::log(gap.unit()) / options_.rate;
    if (!may_ask(next_arrival_)) return;
    after(next_arrival_, [this] {
      ask_next(next_arrival_);
      await_arrival();
    });
  }

  void start_burst() {
    result_.burst.emplace();
    result_.burst->start = asker_.now();
    for (std::int32_t i = 0; i < options_.burst; ++i)
      ask(true, i, [this](ServeRecord record) {
        BurstTimes& times = *result_.burst;
        times.all_started =
            std::max(times.all_started, record.events.empty() ? record.end : record.events.front());
        times.end = std::max(times.end, record.end);
        keep(std::move(record));
        if (++burst_ended_ < options_.burst) return;
        stopped_ = true;
        asker_.leave_all();
      });
  }

  ServeAsker& asker_;
  const WordList& words_;
  const LoadOptions& options_;
  LoadResult result_;
  std::int32_t asked_ = 0;
  std::int32_t burst_ended_ = 0;
  double next_arrival_ = 0;
  bool stopped_ = false;
};

}  // namespace

LoadResult run_load(ServeAsker& asker, const WordList& words, const LoadOptions& options) {
  return LoadRun(asker, words, options).run();
}

}  // namespace strata::apps
