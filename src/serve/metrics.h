// Counters and distributions of the server, in the text format of Prometheus. Names are vLLM's
// where it has one for the same thing, and mean the same: each choice of each prompt is a request.
// Choices share a prompt, which is computed once: what concerns prompts counts once for each.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::serve {

enum class RequestEnd : std::uint8_t { kStop, kLength, kFailed, kDisconnected };

// Counts of values up to each bound, and their sum.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1) {}

  void add(double value);
  void add(const Histogram& other);  // REQUIRES: its bounds are the same
  bool empty() const { return count_ == 0; }
  // The lines of one metric but its HELP and TYPE. `labels` as model="x".
  std::string text(std::string_view name, std::string_view labels) const;
  // About the value that `share` of all lie below, from the bounds around it; 0 where there is
  // none.
  double quantile(double share) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;  // per interval; the last is beyond all bounds
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

// Of one model. Thread-safe.
class Metrics {
 public:
  struct Counts {
    std::uint64_t arrived = 0, refused = 0, done = 0, failed = 0, disconnected = 0;
    std::uint64_t done_by_length = 0;
    std::uint64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  };
  struct Values {
    Counts counts;
    Histogram first_token{kLong}, next_token{kShort}, end_to_end{kLong}, queued{kLong};
    Histogram prompt{kTokens}, completion{kTokens};
  };

  void requests_arrived(std::int64_t count);
  void requests_refused(std::int64_t count);
  void requests_abandoned(std::int64_t count);  // by their client, before they reached an engine
  // `queued_seconds`: also those that the request waited for its model.
  void prompt_started(double queued_seconds, std::int64_t prompt_tokens, std::int64_t cached);
  void first_token(double seconds);  // of a choice; counts the token, as next_token() does
  void next_token(double seconds);
  void request_ended(RequestEnd end, double seconds, std::int64_t completion_tokens);

  Counts counts() const;
  Values values() const;

 private:
  static constexpr std::array kShort = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                        0.15,  0.2,    0.3,   0.4,  0.5,   0.75, 1.0,   2.5};
  static constexpr std::array kLong = {0.001, 0.01, 0.05, 0.1,  0.25, 0.5,   1.0,  2.5,
                                       5.0,   10.0, 20.0, 40.0, 80.0, 160.0, 640.0};
  static constexpr std::array kTokens = {1.0,   2.0,   5.0,    10.0,   20.0,   50.0,    100.0,
                                         200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0, 50000.0};

  mutable std::mutex mutex_;
  Values values_;
};

// Those of all models, by name; requests for one that is not here count under an empty name, of
// which text() has only what is not 0.
// Thread-safe.
class ServerMetrics {
 public:
  Metrics& of(const std::string& model);  // stays where it is

  std::string text() const;
  Metrics::Counts counts() const;              // of all together
  double queued_quantile(double share) const;  // likewise

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Metrics> models_;
};

// A metric's HELP and TYPE.
std::string metric_head(std::string_view name, std::string_view kind, std::string_view help);
// model_name="...", as a label holds it.
std::string model_label(std::string_view name);

}  // namespace strata::serve
