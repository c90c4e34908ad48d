// What came of a load: times, tokens and errors, for people and for programs.
#pragma once

#include <boost/json.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench_serve_load.h"

namespace strata::apps {

// The value below which that share of `values` lies, interpolated between its neighbours.
// REQUIRES: sorted, not empty; 0 <= share <= 1.
double quantile(const std::vector<double>& values, double share);

// The most that a good request may take, in ms.
struct GoodLimits {
  std::optional<double> first_text, per_token, whole;

  // e.g. "ttft:500,tpot:50,e2e:9000"
  static Result<GoodLimits> parse(std::string_view text);
  bool given() const { return first_text || per_token || whole; }
  bool met_by(const ServeRecord& record) const;
  boost::json::object json() const;  // those that are given
};

// Of requests. Times in s.
struct ServeSummary {
  std::string group;
  std::size_t requests = 0, complete = 0, left = 0, good = 0;
  std::map<std::string, std::size_t> errors;  // by kind
  std::int64_t prompt_tokens = 0, cached_tokens = 0, answer_tokens = 0;
  std::vector<double> first_text;  // time to it, sorted, as are the others
  std::vector<double> per_token;   // between the first text and the last
  std::vector<double> between;     // one text and the next
  std::vector<double> whole;

  // Of the requests that their client did not leave; nothing without any.
  std::optional<double> good_share() const;
};
ServeSummary summarize(std::string group, const std::vector<const ServeRecord*>& records,
                       const GoodLimits& limits);

// While as many streams as ever were at it, between their first and last text.
struct FullLoad {
  std::size_t streams = 0;
  double seconds = 0;
  double tokens = 0;
};
FullLoad full_load_of(const std::vector<ServeRecord>& records);

// Gaps between texts of the steady streams.
struct BurstGaps {
  std::vector<double> before;   // the burst came
  std::vector<double> prompts;  // until all of the burst had text
  std::vector<double> answers;  // until its end
};
BurstGaps burst_gaps(const std::vector<ServeRecord>& records, const BurstTimes& times);

struct ServeReport {
  boost::json::object settings;
  GoodLimits limits;
  LoadResult load;
};
std::string serve_table(const ServeReport& report);
std::string serve_json(const ServeReport& report);

}  // namespace strata::apps
