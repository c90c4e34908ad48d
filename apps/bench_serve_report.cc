#include "bench_serve_report.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>

#include "base/ascii.h"
#include "base/printable.h"
#include "bench_result.h"
#include "numbers.h"
#include "version.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

constexpr double kMilli = 1e3;
constexpr std::pair<const char*, double> kQuantiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double first_text_of(const ServeRecord& record) { return record.events.front() - record.start; }

// Nothing where one token has no next one.
std::optional<double> per_token_of(const ServeRecord& record) {
  if (record.events.empty() || record.answer_tokens < 2) return std::nullopt;
  return (record.events.back() - record.events.front()) /
         static_cast<double>(record.answer_tokens - 1);
}

struct Totals {
  ServeSummary all;
  double seconds = 0;
  FullLoad full;
};

Totals totals_of(const ServeReport& report) {
  Totals totals;
  std::vector<const ServeRecord*> all;
  double first = 0;
  for (const ServeRecord& record : report.load.records) {
    first = all.empty() ? record.start : std::min(first, record.start);
    totals.seconds = std::max(totals.seconds, record.end);
    all.push_back(&record);
  }
  totals.seconds = std::max(totals.seconds - first, 1e-9);
  totals.all = summarize("all", all, report.limits);
  totals.full = full_load_of(report.load.records);
  return totals;
}

// In the order in which the groups began; none where all are one.
std::vector<ServeSummary> groups_of(const ServeReport& report) {
  std::map<std::string, std::pair<double, std::vector<const ServeRecord*>>> groups;
  for (const ServeRecord& record : report.load.records) {
    auto& [start, members] =
        groups.try_emplace(record.group, record.start, std::vector<const ServeRecord*>())
            .first->second;
    start = std::min(start, record.start);
    members.push_back(&record);
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, group] : groups) order.emplace_back(group.first, name);
  std::ranges::sort(order);
  std::vector<ServeSummary> out;
  if (order.size() > 1)
    for (const auto& [start, name] : order)
      out.push_back(summarize(name, groups.at(name).second, report.limits));
  return out;
}

json::value times_json(const std::vector<double>& seconds) {
  if (seconds.empty()) return nullptr;
  json::object out{{"count", seconds.size()}, {"mean", six_digits(kMilli * mean_of(seconds))}};
  for (const auto& [name, share] : kQuantiles)
    out[name] = six_digits(kMilli * quantile(seconds, share));
  out["highest"] = six_digits(kMilli * seconds.back());
  return out;
}

json::object summary_json(const ServeSummary& summary) {
  json::object errors;
  for (const auto& [kind, count] : summary.errors) errors[kind] = count;
  const std::optional<double> share = summary.good_share();
  return {{"group", summary.group},
          {"requests", summary.requests},
          {"complete", summary.complete},
          {"left", summary.left},
          {"good", summary.good},
          {"good_share", share ? json::value(six_digits(*share)) : json::value()},
          {"errors", std::move(errors)},
          {"prompt_tokens", summary.prompt_tokens},
          {"cached_tokens", summary.cached_tokens},
          {"answer_tokens", summary.answer_tokens},
          {"ttft_ms", times_json(summary.first_text)},
          {"tpot_ms", times_json(summary.per_token)},
          {"itl_ms", times_json(summary.between)},
          {"e2e_ms", times_json(summary.whole)}};
}

std::string milliseconds(const std::vector<double>& seconds, double share) {
  if (seconds.empty()) return "-";
  const double value = kMilli * quantile(seconds, share);
  return fmt::format("{:.{}f}", value, value < 100 ? 2 : 0);
}

std::string times_line(std::string_view name, const std::vector<double>& seconds) {
  std::string line = fmt::format("{:<22}", name);
  for (const auto& [quantile_name, share] : kQuantiles)
    line += fmt::format(" {:>9}", milliseconds(seconds, share));
  return line + fmt::format(" {:>9}\n", milliseconds(seconds, 1));
}

std::string group_line(const ServeSummary& summary) {
  const double prompts = static_cast<double>(summary.prompt_tokens);
  const double asked = static_cast<double>(summary.complete);
  return fmt::format(
      "{:<12} {:>8} {:>10} {:>8} {:>9} {:>9} {:>9} {:>9}\n", summary.group, summary.requests,
      asked > 0 ? fmt::format("{:.0f}", prompts / asked) : "-",
      prompts > 0
          ? fmt::format("{:.1f} %", 100 * static_cast<double>(summary.cached_tokens) / prompts)
          : "-",
      milliseconds(summary.first_text, 0.5), milliseconds(summary.first_text, 0.95),
      milliseconds(summary.per_token, 0.5), milliseconds(summary.between, 0.99));
}

std::string groups_table(const std::vector<ServeSummary>& groups) {
  if (groups.empty()) return {};
  std::string text =
      fmt::format("{:<12} {:>8} {:>10} {:>8} {:>9} {:>9} {:>9} {:>9}\n", "", "requests", "prompt",
                  "cached", "TTFT p50", "TTFT p95", "TPOT p50", "ITL p99");
  for (const ServeSummary& group : groups) text += group_line(group);
  return text + "\n";
}

std::string counts_text(const Totals& totals, const GoodLimits& limits) {
  const ServeSummary& all = totals.all;
  std::string text = fmt::format("{} requests in {:.2f} s, {} complete", all.requests,
                                 totals.seconds, all.complete);
  if (all.left > 0) text += fmt::format(", {} left by their client", all.left);
  for (const auto& [kind, count] : all.errors) text += fmt::format(", {} {}", count, kind);
  if (limits.given())
    text +=
        fmt::format(", {} good ({:.1f} %, {:.2f}/s)", all.good, 100 * all.good_share().value_or(0),
                    static_cast<double>(all.good) / totals.seconds);
  text += fmt::format("\nprompts: {} tokens, {} cached, {:.1f} tokens/s\n", all.prompt_tokens,
                      all.cached_tokens, static_cast<double>(all.prompt_tokens) / totals.seconds);
  text += fmt::format("answers: {} tokens, {:.1f} tokens/s", all.answer_tokens,
                      static_cast<double>(all.answer_tokens) / totals.seconds);
  if (totals.full.seconds > 0 && totals.full.streams > 1)
    text += fmt::format(
        "; {:.1f} tokens/s in the {:.2f} s in which {} streams, the most at a "
        "time, gave text",
        totals.full.tokens / totals.full.seconds, totals.full.seconds, totals.full.streams);
  return text + "\n";
}

}  // namespace

double quantile(const std::vector<double>& values, double share) {
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
}

Result<GoodLimits> GoodLimits::parse(std::string_view text) {
  GoodLimits limits;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t colon = std::min(part.find(':'), part.size());
    const std::string_view name = part.substr(0, colon);
    double value = 0;
    STRATA_TRY(parse_number(part.substr(std::min(colon + 1, part.size())), value));
    if (!(value > 0) || std::isinf(value))
      return invalid_argument("'{}' is no time in ms", printable(part, 32));
    if (name == "ttft")
      limits.first_text = value;
    else if (name == "tpot")
      limits.per_token = value;
    else if (name == "e2e")
      limits.whole = value;
    else
      return invalid_argument("'{}' is no limit; write for example ttft:500,tpot:50,e2e:9000",
                              printable(part, 32));
  }
  return limits;
}

bool GoodLimits::met_by(const ServeRecord& record) const {
  if (!record.complete()) return false;
  const auto within = [](std::optional<double> seconds, const std::optional<double>& limit) {
    return !limit || !seconds || kMilli * *seconds <= *limit;
  };
  const double end = record.end - record.start;
  return within(record.events.empty() ? end : first_text_of(record), first_text) &&
         within(per_token_of(record), per_token) && within(end, whole);
}

json::object GoodLimits::json() const {
  json::object out;
  if (first_text) out["ttft_ms"] = *first_text;
  if (per_token) out["tpot_ms"] = *per_token;
  if (whole) out["e2e_ms"] = *whole;
  return out;
}

std::optional<double> ServeSummary::good_share() const {
  if (requests == left) return std::nullopt;
  return static_cast<double>(good) / static_cast<double>(requests - left);
}

ServeSummary summarize(std::string group, const std::vector<const ServeRecord*>& records,
                       const GoodLimits& limits) {
  ServeSummary out;
  out.group = std::move(group);
  out.requests = records.size();
  for (const ServeRecord* const record : records) {
    out.left += record->left ? 1 : 0;
    out.good += limits.met_by(*record) ? 1 : 0;
    if (!record->error.empty()) ++out.errors[record->error];
    out.prompt_tokens += record->prompt_tokens;
    out.cached_tokens += record->cached_tokens;
    out.answer_tokens += record->answer_tokens;
    if (!record->events.empty()) out.first_text.push_back(first_text_of(*record));
    for (std::size_t i = 1; i < record->events.size(); ++i)
      out.between.push_back(record->events[i] - record->events[i - 1]);
    if (!record->complete()) continue;
    ++out.complete;
    out.whole.push_back(record->end - record->start);
    if (const auto each = per_token_of(*record)) out.per_token.push_back(*each);
  }
  for (auto* const times : {&out.first_text, &out.per_token, &out.between, &out.whole})
    std::ranges::sort(*times);
  return out;
}

FullLoad full_load_of(const std::vector<ServeRecord>& records) {
  enum class What : std::uint8_t { kText, kStart, kEnd };
  std::vector<std::tuple<double, What, double>> moments;  // with the tokens that came
  for (const ServeRecord& record : records) {
    if (record.events.size() < 2) continue;
    moments.emplace_back(record.events.front(), What::kStart, 0);
    moments.emplace_back(record.events.back(), What::kEnd, 0);
    const double tokens =
        static_cast<double>(record.answer_tokens) / static_cast<double>(record.events.size());
    for (const double time : std::span(record.events).subspan(1))
      moments.emplace_back(time, What::kText, tokens);
  }
  std::ranges::sort(moments);
  FullLoad full;
  std::size_t streams = 0;
  const auto count = [&](What what) {
    streams += what == What::kStart ? 1 : what == What::kEnd ? std::size_t(-1) : 0;
  };
  for (const auto& [time, what, tokens] : moments) {
    count(what);
    full.streams = std::max(full.streams, streams);
  }
  double before = 0;
  for (const auto& [time, what, tokens] : moments) {
    if (streams == full.streams) {
      full.seconds += time - before;
      full.tokens += tokens;
    }
    count(what);
    before = time;
  }
  return full;
}

BurstGaps burst_gaps(const std::vector<ServeRecord>& records, const BurstTimes& times) {
  BurstGaps gaps;
  for (const ServeRecord& record : records) {
    if (record.group != "steady") continue;
    for (std::size_t i = 1; i < record.events.size(); ++i) {
      const double from = record.events[i - 1];
      const double to = record.events[i];
      if (to <= times.start)
        gaps.before.push_back(to - from);
      else if (from < times.all_started)
        gaps.prompts.push_back(to - from);
      else if (from < times.end)
        gaps.answers.push_back(to - from);
    }
  }
  for (auto* const each : {&gaps.before, &gaps.prompts, &gaps.answers}) std::ranges::sort(*each);
  return gaps;
}

std::string serve_table(const ServeReport& report) {
  const Totals totals = totals_of(report);
  std::string text = groups_table(groups_of(report));
  text += fmt::format("{:<22} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "ms", "p50", "p90", "p95", "p99",
                      "highest");
  text += times_line("time to first text", totals.all.first_text);
  text += times_line("time per token", totals.all.per_token);
  text += times_line("between texts", totals.all.between);
  text += times_line("end to end", totals.all.whole);
  if (report.load.burst) {
    const BurstGaps gaps = burst_gaps(report.load.records, *report.load.burst);
    text += times_line("steady before burst", gaps.before);
    text += times_line("steady in its prompts", gaps.prompts);
    text += times_line("steady in its answers", gaps.answers);
  }
  return text + counts_text(totals, report.limits);
}

std::string serve_json(const ServeReport& report) {
  const Totals totals = totals_of(report);
  const auto per_second = [&](auto count) {
    return six_digits(static_cast<double>(count) / totals.seconds);
  };
  json::object out{{"strata", json::object{{"version", json::string(program_version())},
                                           {"commit", json::string(program_commit())}}},
                   {"settings", report.settings},
                   {"seconds", six_digits(totals.seconds)},
                   {"requests_per_second", per_second(totals.all.complete)},
                   {"good_requests_per_second", per_second(totals.all.good)},
                   {"prompt_tokens_per_second", per_second(totals.all.prompt_tokens)},
                   {"answer_tokens_per_second", per_second(totals.all.answer_tokens)},
                   {"full_load", nullptr},
                   {"total", summary_json(totals.all)}};
  if (totals.full.seconds > 0)
    out["full_load"] =
        json::object{{"streams", totals.full.streams},
                     {"seconds", six_digits(totals.full.seconds)},
                     {"tokens_per_second", six_digits(totals.full.tokens / totals.full.seconds)}};
  if (report.load.burst) {
    const BurstGaps gaps = burst_gaps(report.load.records, *report.load.burst);
    out["steady_itl_ms"] = json::object{{"before", times_json(gaps.before)},
                                        {"prompts", times_json(gaps.prompts)},
                                        {"answers", times_json(gaps.answers)}};
  }
  json::array groups;
  for (const ServeSummary& group : groups_of(report)) groups.push_back(summary_json(group));
  out["groups"] = std::move(groups);
  return readable_json(out);
}

}  // namespace strata::apps
