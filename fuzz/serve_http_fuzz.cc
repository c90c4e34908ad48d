// Reads any bytes as the requests of one connection and checks who may ask. Whether they come whole
// or in pieces, whose size the first byte says, makes no difference.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "serve/http/access.h"
#include "serve/http/request_parser.h"

namespace {

using strata::http::AccessRules;
using strata::http::IncomingRequest;
using strata::http::RequestParser;
using strata::http::ServerOptions;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

ServerOptions fuzz_options() {
  ServerOptions options;
  options.max_header_bytes = 512;
  options.max_body_bytes = 256;
  options.allowed_hosts = {"box.lan"};
  options.allowed_origins = {"app://page"};
  options.api_keys = {"key"};
  return options;
}

// A text that differs where requests, or what is answered to them, differ.
std::string outcome_of(RequestParser& parser, const AccessRules& rules,
                       const ServerOptions& options) {
  if (parser.state() == RequestParser::State::kFailed) {
    const int status = parser.refusal().status;
    require(status >= 400 && status < 600);
    return "refused";  // which limit is met first may depend on the pieces
  }
  const IncomingRequest& incoming = parser.incoming();
  require(incoming.request.body.size() <= options.max_body_bytes);
  require(strata::utf8_valid_bytes(incoming.request.path) == incoming.request.path.size());
  std::string outcome = incoming.request.method + " " + incoming.request.path + " ";
  for (const auto& [name, value] : incoming.request.query) outcome += name + "=" + value + "&";
  for (const auto& [name, value] : incoming.request.headers) {
    require(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    outcome += name + ":" + value + "\n";
  }
  const auto answer = rules.check(incoming, "192.168.1.5");
  for (const auto& [name, value] : rules.cors_headers(incoming)) outcome += name + ":" + value;
  return outcome + incoming.request.body + (answer ? answer->body : "served");
}

std::vector<std::string> outcomes(std::string_view bytes, std::size_t piece) {
  const ServerOptions options = fuzz_options();
  const AccessRules rules(options);
  std::vector<std::string> results;
  std::size_t taken = 0;
  for (bool more = true; more && taken < bytes.size();) {
    RequestParser parser(options);
    std::size_t end = std::min(taken + piece, bytes.size());
    while (parser.state() <= RequestParser::State::kBody) {
      const RequestParser::State before = parser.state();
      const std::size_t step = parser.feed(bytes.substr(taken, end - taken));
      taken += step;
      require(taken <= end);
      if (parser.state() != before || (step > 0 && taken < end)) continue;
      if (!(more = end < bytes.size())) break;
      end = std::min(end + piece, bytes.size());
    }
    if (parser.state() <= RequestParser::State::kBody) break;
    results.push_back(outcome_of(parser, rules, options));
    more = parser.state() == RequestParser::State::kDone;
  }
  return results;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = outcomes(bytes, std::max<std::size_t>(bytes.size(), 1));
  const auto pieces = outcomes(bytes, std::size_t{1} + data[0]);
  const std::size_t both = std::min(whole.size(), pieces.size());
  require(
      std::equal(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(both), pieces.begin()));
  return 0;
}
