// What a client asked and what it is answered, as HTTP (RFC 9110) sees it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::http {

using Fields = std::vector<std::pair<std::string, std::string>>;

// Values of a request's head are as they came: any bytes but controls. `path` and `query` are
// UTF-8.
struct HttpRequest {
  std::string method;  // upper case; HEAD arrives as GET, and the server leaves out the body
  std::string path;    // decoded, starts with '/', without the query
  Fields query;        // decoded, in order
  Fields headers;      // in order; see header()
  std::string body;
  std::string peer;  // the client's address, without its port

  // The first header of that name, whatever its case.
  std::optional<std::string_view> header(std::string_view name) const;
  // The first query value of that name.
  std::optional<std::string_view> query_value(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  Fields headers;  // besides Content-Type, Content-Length and those of the connection
  std::string body;
  std::string content_type = "application/json";
  std::string error = {};  // the message of error_response()
};

// {"error": {"message": ..., "type": ..., "code": ...}}. Bytes of `message` that are not UTF-8 are
// replaced.
HttpResponse error_response(int status, std::string_view type, std::string_view code,
                            std::string_view message);

// 503 for what may be tried again after a moment, with Retry-After.
HttpResponse overload_response(std::string_view code, std::string_view message);

}  // namespace strata::http
