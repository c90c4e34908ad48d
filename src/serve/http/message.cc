#include "serve/http/message.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/ascii.h"
#include "base/printable.h"

namespace strata::http {
namespace {

std::optional<std::string_view> value_of(const Fields& fields, std::string_view name,
                                         bool (*same)(std::string_view, std::string_view)) {
  const auto found =
      std::ranges::find_if(fields, [&](const auto& field) { return same(field.first, name); });
  if (found == fields.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  return value_of(headers, name, [](std::string_view a, std::string_view b) {
    return std::ranges::equal(
        a, b, {}, [](char c) { return lower_case(c); }, [](char c) { return lower_case(c); });
  });
}

std::optional<std::string_view> HttpRequest::query_value(std::string_view name) const {
  return value_of(query, name, [](std::string_view a, std::string_view b) { return a == b; });
}

HttpResponse error_response(int status, std::string_view type, std::string_view code,
                            std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.error = replace_invalid_utf8(message);
  response.body = boost::json::serialize(
      boost::json::object{{"error", boost::json::object{{"message", response.error},
                                                        {"type", std::string(type)},
                                                        {"code", std::string(code)}}}});
  return response;
}

HttpResponse overload_response(std::string_view code, std::string_view message) {
  HttpResponse response = error_response(503, "overloaded_error", code, message);
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace strata::http
