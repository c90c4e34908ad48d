// JSON as the body of a response.
#pragma once

#include <boost/json.hpp>

#include "serve/http/message.h"
#include "serve/refusal.h"

namespace strata::serve {

inline http::HttpResponse json_response(const boost::json::value& body, int status = 200) {
  http::HttpResponse response;
  response.status = status;
  response.body = boost::json::serialize(body);
  return response;
}

// Tells a client when to come again, or not to: OpenAI's know the second.
inline void add_retry_hints(const Refusal& refusal, http::HttpResponse& response) {
  if (refusal.is_overload()) response.headers.emplace_back("Retry-After", "1");
  if (!refusal.repeatable) response.headers.emplace_back("x-should-retry", "false");
}

}  // namespace strata::serve
