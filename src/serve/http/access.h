// Who may ask: the checks on host, origin and key that come before every handler.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/options.h"
#include "serve/http/request_parser.h"

namespace strata::http {

class AccessRules {
 public:
  explicit AccessRules(const ServerOptions& options);

  // What the server answers itself: a refusal, or the answer to OPTIONS. Nothing: the request is
  // for the handler. `local_address` is where the client reached the server.
  std::optional<HttpResponse> check(const IncomingRequest& incoming,
                                    std::string_view local_address) const;

  // The headers that let the page of an allowed origin read the answer; none for other clients.
  Fields cors_headers(const IncomingRequest& incoming) const;

 private:
  bool allows_host(const IncomingRequest& incoming, std::string_view local_address) const;
  bool allows_origin(const IncomingRequest& incoming) const;
  bool knows_key(const HttpRequest& request) const;

  std::vector<std::string> hosts_;    // in normal form
  std::vector<std::string> origins_;  // in lower case
  bool any_host_ = false;
  bool any_origin_ = false;
  std::function<std::string(const std::string& path)> methods_;
  std::vector<std::string> keys_;
  std::vector<std::string> open_paths_;
};

}  // namespace strata::http
