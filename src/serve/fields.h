// The members of a request's JSON: read by name and kind, with those that nobody read left over.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "serve/refusal.h"

namespace strata::serve {

// The object that a body is. 400 for anything else, and beyond 128 levels.
Answer<boost::json::object> parse_body(std::string_view body);

std::string text_of(const boost::json::string& text);

// null counts as absent. Errors are 400 and name the field.
class Fields {
 public:
  // `object` must outlive this. `path` stands before names in errors, as in "options.".
  explicit Fields(const boost::json::object& object, std::string path = {})
      : object_(object), path_(std::move(path)) {}

  const boost::json::value* value(std::string_view name);  // null where absent
  Answer<std::optional<std::string>> text(std::string_view name);
  Answer<std::optional<bool>> boolean(std::string_view name);
  Answer<std::optional<double>> number(std::string_view name, double low, double high);
  Answer<std::optional<std::int64_t>> integer(std::string_view name, std::int64_t low,
                                              std::int64_t high);
  Answer<const boost::json::object*> object(std::string_view name);
  Answer<const boost::json::array*> array(std::string_view name);
  // What `result` is, or its error as one of this field.
  template <typename T>
  Answer<T> checked(std::string_view name, Result<T> result) const {
    if (!result.ok()) return wrong_field(path_ + std::string(name), result.status());
    return std::move(result).value();
  }
  // A text or a list of texts.
  Answer<std::vector<std::string>> texts(std::string_view name, std::size_t most);

  // Members that are fine and say nothing to this program.
  void accept(std::initializer_list<std::string_view> names);
  // Known members without support: an error unless they ask for nothing (false, 0, "", [], {}).
  std::optional<Refusal> refuse(std::initializer_list<std::string_view> names);

  // A sentence for each member that nobody asked for.
  std::vector<std::string> warnings() const;

  Refusal wrong(std::string_view name, std::string_view what) const;

 private:
  const boost::json::object& object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace strata::serve
