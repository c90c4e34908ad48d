#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace strata::serve {
namespace {

std::string head(std::string_view name, std::string_view kind, std::string_view help) {
  return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, kind);
}

}  // namespace

std::string metric_line(std::string_view name, std::string_view kind, std::string_view help,
                        std::string_view labels, double value) {
  return head(name, kind, help) + fmt::format("{}{} {}\n", name, labels, value);
}

void Histogram::add(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  ++count_;
  sum_ += value;
}

std::string Histogram::text(std::string_view name) const {
  std::string out;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], below);
  }
  return out + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name,
                           count_, sum_);
}

double Histogram::quantile(double share) const {
  if (count_ == 0) return 0;
  const double wanted = share * static_cast<double>(count_);
  double below = 0;
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    const auto here = static_cast<double>(counts_[i]);
    if (below + here >= wanted) {
      const double low = i == 0 ? 0 : bounds_[i - 1];
      return low + (bounds_[i] - low) * (here > 0 ? (wanted - below) / here : 1);
    }
    below += here;
  }
  return bounds_.back();
}

void Metrics::requests_arrived(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  counts_.arrived += static_cast<std::uint64_t>(count);
}

void Metrics::requests_refused(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  counts_.refused += static_cast<std::uint64_t>(count);
}

void Metrics::requests_abandoned(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  counts_.disconnected += static_cast<std::uint64_t>(count);
}

void Metrics::prompt_started(double queued_seconds, std::int64_t prompt_tokens,
                             std::int64_t cached) {
  const std::lock_guard lock(mutex_);
  queued_.add(queued_seconds);
  prompt_.add(static_cast<double>(prompt_tokens));
  counts_.prompt_tokens += static_cast<std::uint64_t>(prompt_tokens);
  counts_.cached_tokens += static_cast<std::uint64_t>(cached);
}

void Metrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.add(seconds);
}

void Metrics::next_token(double seconds) {
  const std::lock_guard lock(mutex_);
  next_token_.add(seconds);
}

void Metrics::request_ended(RequestEnd end, double seconds, std::int64_t completion) {
  const std::lock_guard lock(mutex_);
  counts_.completion_tokens += static_cast<std::uint64_t>(completion);
  switch (end) {
    case RequestEnd::kDone:
      ++counts_.done;
      end_to_end_.add(seconds);
      completion_.add(static_cast<double>(completion));
      break;
    case RequestEnd::kFailed: ++counts_.failed; break;
    case RequestEnd::kDisconnected: ++counts_.disconnected; break;
  }
}

Metrics::Counts Metrics::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

double Metrics::queued_quantile(double share) const {
  const std::lock_guard lock(mutex_);
  return queued_.quantile(share);
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  const auto histogram = [&](std::string_view name, std::string_view help, const Histogram& of) {
    out += head(name, "histogram", help) + of.text(name);
  };
  histogram("vllm:time_to_first_token_seconds", "From a request to its first token.", first_token_);
  histogram("vllm:inter_token_latency_seconds", "From one token of a request to its next.",
            next_token_);
  histogram("vllm:e2e_request_latency_seconds", "From a request to the end of its answer.",
            end_to_end_);
  histogram("vllm:request_queue_time_seconds", "From a request to the start of each prompt.",
            queued_);
  histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", prompt_);
  histogram("vllm:request_generation_tokens", "Tokens of an answer.", completion_);
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    out += metric_line(name, "counter", help, "", static_cast<double>(value));
  };
  counter("strata:requests_total", "Requests: each choice of each prompt is one.", counts_.arrived);
  counter("strata:requests_refused_total", "Of these, refused before they started.",
          counts_.refused);
  counter("vllm:request_success_total", "Requests whose answers are complete.", counts_.done);
  counter("strata:requests_failed_total", "Requests that an error ended.", counts_.failed);
  counter("strata:requests_disconnected_total", "Requests whose clients went.",
          counts_.disconnected);
  counter("vllm:prompt_tokens_total", "Tokens of prompts.", counts_.prompt_tokens);
  counter("strata:prompt_tokens_cached_total", "Of these, taken from the cache.",
          counts_.cached_tokens);
  counter("vllm:generation_tokens_total", "Tokens of answers.", counts_.completion_tokens);
  return out;
}

}  // namespace strata::serve
