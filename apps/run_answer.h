// Asks the engine for answers and follows them as they come.
#pragma once

#include <span>
#include <string>

#include "chat_printer.h"
#include "engine/engine.h"
#include "run_interrupts.h"
#include "text/answer.h"

namespace strata::apps {

// The end of a request.
struct Ending {
  FinishReason reason = FinishReason::kStop;  // of the last choice to end
  bool interrupted = false;                   // by Ctrl-C
};

// Whether the first token chosen was one that ends an answer.
inline bool ended_at_once(const Ending& ending, const AnswerText& answer) {
  return ending.reason == FinishReason::kStop && !ending.interrupted && answer.tokens().empty();
}

struct Timing {
  std::int64_t prompt_tokens = 0;
  std::int64_t generated = 0;
  std::int64_t timed = 0;         // of these, without the first, which a prompt's computation gives
  double prompt_seconds = 0;      // until the first token, or the end where there is none
  double generation_seconds = 0;  // of the timed ones

  Timing& operator+=(const Timing& other);
};
// Lines for --verbose.
std::string describe(const Timing& timing);

// Runs `request` to its end with one text for each choice. The first is printed while it comes (but
// not finished: it may be continued), the others collected. Fails where the engine or the printer
// does; the engine is then idle again.
Result<Ending> follow(Engine& engine, Request request, std::span<AnswerText> texts,
                      Printer& printer, Interrupts& interrupts, Timing& timing);

}  // namespace strata::apps
