// What a server keeps of its memory budget for the work on requests, which has limits to match.
#pragma once

#include <algorithm>

#include "base/units.h"
#include "serve/http/options.h"
#include "text/template/limits.h"

namespace strata::serve {

class Reserve {
 public:
  // Of small budgets a share, so that they still hold models. `handlers`: requests at work at a
  // time.
  explicit Reserve(Bytes budget, int handlers = http::ServerOptions().workers)
      : part_(std::clamp(budget / 32, kMiB, 64 * kMiB)), handlers_(static_cast<Bytes>(handlers)) {}

  // Of the bodies of all unanswered requests together, and of one.
  Bytes bodies() const { return part_; }
  // Prompts that wait have taken the place of the bodies they came in.
  std::int64_t queued_tokens() const { return part_ / kQueuedTokenBytes; }
  Bytes body() const { return std::min(part_ / 4, 32 * kMiB); }
  // JSON values of a body: a tree of small ones takes some 70 bytes for each, and there are up to
  // four, as the body, the request, what the template gets and what it makes of that.
  std::size_t values() const { return static_cast<std::size_t>(part_ / 256); }
  // While a handler works, its body becomes values, the request, its prompt and the tokens of it.
  jinja::RenderLimits rendering() const {
    jinja::RenderLimits limits;
    limits.memory_bytes = std::min<Bytes>(limits.memory_bytes, part_ / 2);
    limits.text_bytes = std::min<Bytes>(limits.text_bytes, part_ / 16);
    return limits;
  }
  // Text that becomes tokens at once, which takes some 60 times as much.
  Bytes tokenized() const { return std::min(part_ / 60, 4 * kMiB); }
  // Of the grammars of one model.
  Bytes grammars() const { return part_; }

  // Of requests, whatever models there are.
  Bytes requests() const { return bodies() + handlers_ * part_; }

 private:
  // Of a request, of its sequence, and of what its answer repeats of it.
  static constexpr Bytes kQueuedTokenBytes = 16;

  Bytes part_;
  Bytes handlers_;
};

}  // namespace strata::serve
