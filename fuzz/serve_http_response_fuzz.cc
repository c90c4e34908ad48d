// Reads any bytes as the response to a client. Whether they come whole or in pieces, whose size the
// first byte says, makes no difference, and a response that has ended stays as it is.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "serve/http/response_reader.h"

namespace {

using strata::http::ResponseReader;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

struct Outcome {
  ResponseReader::State fed, ended;
  int status = 0;
  std::string body;

  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(std::string_view bytes, std::size_t piece) {
  ResponseReader reader;
  Outcome outcome;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    reader.feed(bytes.substr(at, piece), outcome.body);
  outcome.fed = reader.state();
  const bool over =
      outcome.fed == ResponseReader::State::kDone || outcome.fed == ResponseReader::State::kFailed;
  const std::size_t size = outcome.body.size();
  if (over) require(reader.feed(bytes, outcome.body) == outcome.fed && outcome.body.size() == size);
  outcome.ended = reader.end();
  require(outcome.ended == ResponseReader::State::kDone ||
          outcome.ended == ResponseReader::State::kFailed);
  outcome.status = reader.status();
  require(outcome.body.size() <= bytes.size());
  require(outcome.status == 0 || (outcome.status >= 200 && outcome.status < 1000));
  require(outcome.ended != ResponseReader::State::kDone || outcome.status != 0);
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  require(outcome_of(bytes, std::max<std::size_t>(bytes.size(), 1)) ==
          outcome_of(bytes, std::size_t{1} + data[0]));
  return 0;
}
