#include "serve/http/access.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/printable.h"
#include "serve/http/target.h"

namespace strata::http {
namespace {

// Takes as long whatever the bytes are; the length of `candidate` is its sender's to know.
bool equal_in_constant_time(std::string_view candidate, std::string_view secret) {
  if (secret.empty()) return false;
  std::size_t difference = candidate.size() ^ secret.size();
  for (std::size_t i = 0; i < candidate.size(); ++i)
    difference |= static_cast<unsigned char>(candidate[i] ^ secret[i % secret.size()]);
  return difference == 0;
}

std::string_view bearer_of(const HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view value = request.header("Authorization").value_or(std::string_view());
  if (lower_case(value.substr(0, kScheme.size())) != kScheme) return {};
  return trimmed(value.substr(kScheme.size()));
}

// The host and port of an origin of the web, else nothing.
std::string_view authority_of(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return origin.substr(scheme.size());
  return {};
}

bool is_header_list(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == ',' || c == ' ';
  });
}

HttpResponse preflight(const HttpRequest& request, const std::string& methods) {
  HttpResponse response;
  response.status = 204;
  response.headers.emplace_back("Allow", methods);
  if (!request.header("Access-Control-Request-Method")) return response;
  response.headers.emplace_back("Access-Control-Allow-Methods", methods);
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  const auto wanted = request.header("Access-Control-Request-Headers");
  if (wanted && is_header_list(*wanted))
    response.headers.emplace_back("Access-Control-Allow-Headers", *wanted);
  return response;
}

}  // namespace

AccessRules::AccessRules(const ServerOptions& options)
    : any_host_(std::ranges::count(options.allowed_hosts, "*") > 0),
      any_origin_(std::ranges::count(options.allowed_origins, "*") > 0),
      methods_(options.methods),
      keys_(options.api_keys),
      open_paths_(options.open_paths) {
  for (const std::string& host : options.allowed_hosts)
    if (auto normal = normal_host(host)) hosts_.push_back(*std::move(normal));
  for (const std::string& origin : options.allowed_origins) origins_.push_back(lower_case(origin));
}

bool AccessRules::allows_host(const IncomingRequest& incoming,
                              std::string_view local_address) const {
  // Only programs that are no browser speak HTTP/1.0 or name no host.
  if (any_host_ || (!incoming.is_http11 && incoming.authority.empty())) return true;
  const auto host = normal_host(incoming.authority);
  return host && (is_loopback_host(*host) || host == normal_host(local_address) ||
                  std::ranges::count(hosts_, *host) > 0);
}

bool AccessRules::allows_origin(const IncomingRequest& incoming) const {
  const auto header = incoming.request.header("Origin");
  if (!header || any_origin_) return true;
  const std::string origin = lower_case(*header);
  const std::string_view authority = authority_of(origin);
  if (!authority.empty()) {
    if (authority == lower_case(incoming.authority)) return true;
    if (const auto host = normal_host(authority); host && is_loopback_host(*host)) return true;
  }
  return std::ranges::count(origins_, origin) > 0;
}

bool AccessRules::knows_key(const HttpRequest& request) const {
  if (keys_.empty() || std::ranges::count(open_paths_, request.path) > 0) return true;
  bool known = false;
  for (const std::string_view key :
       {bearer_of(request), request.header("x-api-key").value_or(std::string_view())})
    for (const std::string& secret : keys_) known |= equal_in_constant_time(key, secret);
  return known;
}

std::optional<HttpResponse> AccessRules::check(const IncomingRequest& incoming,
                                               std::string_view local_address) const {
  const HttpRequest& request = incoming.request;
  if (!allows_host(incoming, local_address))
    return error_response(403, "permission_error", "host_not_allowed",
                          fmt::format("the host \"{}\" is not among those this server answers to; "
                                      "if it should be, start the server with --allow-host NAME",
                                      printable(incoming.authority, 100)));
  if (!allows_origin(incoming))
    return error_response(403, "permission_error", "origin_not_allowed",
                          fmt::format("pages of \"{}\" may not use this server; if they should, "
                                      "start it with --allow-origin ORIGIN",
                                      printable(*request.header("Origin"), 100)));
  if (request.method == "OPTIONS") return preflight(request, methods_(request.path));
  if (!request.path.starts_with('/'))
    return error_response(400, "invalid_request_error", "malformed_address",
                          "the address does not start with '/'");
  if (knows_key(request)) return std::nullopt;
  HttpResponse refusal = error_response(
      401, "authentication_error", "invalid_api_key",
      "this server wants one of its keys, as \"Authorization: Bearer KEY\" or \"x-api-key: KEY\"");
  refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
  return refusal;
}

Fields AccessRules::cors_headers(const IncomingRequest& incoming) const {
  const auto origin = incoming.request.header("Origin");
  if (!origin) return {};
  Fields headers{{"Vary", "Origin"}};
  if (allows_origin(incoming)) headers.emplace_back("Access-Control-Allow-Origin", *origin);
  return headers;
}

}  // namespace strata::http
