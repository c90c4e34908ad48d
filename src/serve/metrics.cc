#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace strata::serve {
std::string metric_head(std::string_view name, std::string_view kind, std::string_view help) {
  return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, kind);
}

std::string model_label(std::string_view name) {
  std::string out = "model_name=\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

void Histogram::add(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  ++count_;
  sum_ += value;
}

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
}

std::string Histogram::text(std::string_view name, std::string_view labels) const {
  std::string out;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    out += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bounds_[i], below);
  }
  return out + fmt::format(
                   "{0}_bucket{{{1},le=\"+Inf\"}} {2}\n{0}_sum{{{1}}} {3}\n"
                   "{0}_count{{{1}}} {2}\n",
                   name, labels, count_, sum_);
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
  values_.counts.arrived += static_cast<std::uint64_t>(count);
}

void Metrics::requests_refused(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  values_.counts.refused += static_cast<std::uint64_t>(count);
}

void Metrics::requests_abandoned(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  values_.counts.disconnected += static_cast<std::uint64_t>(count);
}

void Metrics::prompt_started(double queued_seconds, std::int64_t prompt_tokens,
                             std::int64_t cached) {
  const std::lock_guard lock(mutex_);
  values_.queued.add(queued_seconds);
  values_.prompt.add(static_cast<double>(prompt_tokens));
  values_.counts.prompt_tokens += static_cast<std::uint64_t>(prompt_tokens);
  values_.counts.cached_tokens += static_cast<std::uint64_t>(cached);
}

void Metrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  values_.first_token.add(seconds);
  ++values_.counts.completion_tokens;
}

void Metrics::next_token(double seconds) {
  const std::lock_guard lock(mutex_);
  values_.next_token.add(seconds);
  ++values_.counts.completion_tokens;
}

void Metrics::request_ended(RequestEnd end, double seconds, std::int64_t completion) {
  const std::lock_guard lock(mutex_);
  Counts& counts = values_.counts;
  switch (end) {
    case RequestEnd::kLength: ++counts.done_by_length; [[fallthrough]];
    case RequestEnd::kStop:
      ++counts.done;
      values_.end_to_end.add(seconds);
      values_.completion.add(static_cast<double>(completion));
      break;
    case RequestEnd::kFailed: ++counts.failed; break;
    case RequestEnd::kDisconnected: ++counts.disconnected; break;
  }
}

Metrics::Counts Metrics::counts() const {
  const std::lock_guard lock(mutex_);
  return values_.counts;
}

Metrics::Values Metrics::values() const {
  const std::lock_guard lock(mutex_);
  return values_;
}

Metrics& ServerMetrics::of(const std::string& model) {
  const std::lock_guard lock(mutex_);
  return models_[model];
}

Metrics::Counts ServerMetrics::counts() const {
  const std::lock_guard lock(mutex_);
  Metrics::Counts all;
  for (const auto& [name, metrics] : models_) {
    const Metrics::Counts one = metrics.counts();
    for (const auto member :
         {&Metrics::Counts::arrived, &Metrics::Counts::refused, &Metrics::Counts::done,
          &Metrics::Counts::failed, &Metrics::Counts::disconnected,
          &Metrics::Counts::done_by_length, &Metrics::Counts::prompt_tokens,
          &Metrics::Counts::cached_tokens, &Metrics::Counts::completion_tokens})
      all.*member += one.*member;
  }
  return all;
}

double ServerMetrics::queued_quantile(double share) const {
  const std::lock_guard lock(mutex_);
  Metrics::Values all;
  for (const auto& [name, metrics] : models_) all.queued.add(metrics.values().queued);
  return all.queued.quantile(share);
}

// Of requests for no model there is little to tell.
std::string ServerMetrics::text() const {
  const std::string no_model = model_label("");
  std::vector<std::pair<std::string, Metrics::Values>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, metrics] : models_)
      all.emplace_back(model_label(name), metrics.values());
  }
  std::string out;
  const auto histogram = [&](std::string_view name, std::string_view help,
                             Histogram Metrics::Values::*of) {
    out += metric_head(name, "histogram", help);
    for (const auto& [label, values] : all)
      if (label != no_model || !(values.*of).empty()) out += (values.*of).text(name, label);
  };
  using Values = Metrics::Values;
  histogram("vllm:time_to_first_token_seconds", "From a request to its first token.",
            &Values::first_token);
  histogram("vllm:inter_token_latency_seconds", "From one token of a request to its next.",
            &Values::next_token);
  histogram("vllm:e2e_request_latency_seconds", "From a request to the end of its answer.",
            &Values::end_to_end);
  histogram("vllm:request_queue_time_seconds", "From a request to the start of each prompt.",
            &Values::queued);
  histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", &Values::prompt);
  histogram("vllm:request_generation_tokens", "Tokens of an answer.", &Values::completion);
  const auto counter = [&](std::string_view name, std::string_view help,
                           std::uint64_t Metrics::Counts::*of) {
    out += metric_head(name, "counter", help);
    for (const auto& [label, values] : all)
      if (label != no_model || values.counts.*of > 0)
        out += fmt::format("{}{{{}}} {}\n", name, label, values.counts.*of);
  };
  using Counts = Metrics::Counts;
  counter("strata:requests_total", "Requests: each choice of each prompt is one.",
          &Counts::arrived);
  counter("strata:requests_refused_total", "Of these, refused before they started.",
          &Counts::refused);
  constexpr std::string_view kSuccess = "vllm:request_success_total";
  out += metric_head(kSuccess, "counter", "Requests whose answers are complete.");
  for (const auto& [label, values] : all)
    for (const auto& [reason, count] :
         {std::pair{"stop", values.counts.done - values.counts.done_by_length},
          {"length", values.counts.done_by_length}})
      if (label != no_model || count > 0)
        out += fmt::format("{}{{{},finished_reason=\"{}\"}} {}\n", kSuccess, label, reason, count);
  counter("strata:requests_failed_total", "Requests that an error ended.", &Counts::failed);
  counter("strata:requests_disconnected_total", "Requests whose clients went.",
          &Counts::disconnected);
  counter("vllm:prompt_tokens_total", "Tokens of prompts.", &Counts::prompt_tokens);
  counter("strata:prompt_tokens_cached_total", "Of these, taken from the cache.",
          &Counts::cached_tokens);
  counter("vllm:generation_tokens_total", "Tokens of answers.", &Counts::completion_tokens);
  return out;
}

}  // namespace strata::serve
