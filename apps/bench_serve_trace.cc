#include "bench_serve_trace.h"

#include <algorithm>
#include <memory>

namespace strata::apps {
namespace {

constexpr std::int32_t kTurnsPerSideCall = 5;
constexpr std::int32_t kSideCallTokens = 100;

class Agent {
 public:
  Agent(ServeAsker& asker, const WordList& words, const TraceOptions& options, std::int32_t number,
        std::vector<ServeRecord>& records)
      : asker_(asker),
        words_(words),
        options_(options),
        number_(static_cast<std::uint64_t>(number)),
        records_(records) {
    Draws shared(options.seed, Draws::Use::kPrefix, 0);
    Draws own(options.seed, Draws::Use::kPrompt, number_);
    std::string system;
    if (options.shared_prefix > 0) system = words.text(shared, options.shared_prefix) + ' ';
    const std::int32_t rest = options.prompt - options.shared_prefix;
    history_ = {{"system", system + words.text(own, std::max(rest, 1))}, {"user", added(0)}};
  }

  void next() {
    if (turn_ == options_.turns) return;
    if (!left_ && turn_ == options_.turns / 2) return leave_one();
    if ((turn_ + 1) % kTurnsPerSideCall == 0) ask_aside();
    std::string group = fmt::format("turn {}", turn_ + 1);
    if (turn_ > 1 && turn_ == options_.turns * 3 / 4) {
      group = "restart";
      history_.resize(2);
    }
    asker_.ask(std::move(group), history_, answer_tokens(), [this](ServeRecord record) {
      const bool goes_on = record.complete();
      history_.push_back({"assistant", record.text});
      history_.push_back({"user", added(++turn_)});
      records_.push_back(std::move(record));
      if (goes_on) next();
    });
  }

 private:
  std::uint64_t index() const { return number_ << 32 | static_cast<std::uint64_t>(turn_); }
  std::string added(std::int32_t turn) const {
    Draws draws(options_.seed, Draws::Use::kTurn, number_ << 32 | static_cast<std::uint64_t>(turn));
    return words_.text(draws, options_.turn_tokens);
  }
  std::int32_t answer_tokens() const {
    Draws draws(options_.seed, Draws::Use::kAnswer, index());
    return options_.answer.draw(draws);
  }

  void ask_aside() {
    Draws draws(options_.seed, Draws::Use::kSide, index());
    asker_.ask("side call", {{"user", words_.text(draws, kSideCallTokens)}}, answer_tokens(),
               [this](ServeRecord record) { records_.push_back(std::move(record)); });
  }

  // Goes at the first text, or is answered before.
  void leave_one() {
    left_ = true;
    const auto id = std::make_shared<ServeAsker::Id>(0);
    *id = asker_.ask(
        "disconnect", history_, answer_tokens(),
        [this](ServeRecord record) {
          records_.push_back(std::move(record));
          next();
        },
        [this, id](const ServeRecord&) { asker_.leave(*id); });
  }

  ServeAsker& asker_;
  const WordList& words_;
  const TraceOptions& options_;
  const std::uint64_t number_;
  std::vector<ServeRecord>& records_;
  Messages history_;
  std::int32_t turn_ = 0;
  bool left_ = false;
};

}  // namespace

std::vector<ServeRecord> run_trace(ServeAsker& asker, const WordList& words,
                                   const TraceOptions& options) {
  std::vector<ServeRecord> records;
  std::vector<std::unique_ptr<Agent>> agents;
  for (std::int32_t i = 0; i < options.agents; ++i)
    agents.push_back(std::make_unique<Agent>(asker, words, options, i, records));
  asker.begin();
  for (const auto& agent : agents) agent->next();
  asker.client().run();
  return records;
}

}  // namespace strata::apps
