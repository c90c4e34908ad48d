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

std::string text_of(const boost::json::string& text);

// The members that an object may have, and those of the objects in it.
struct Shape {
  struct Member {
    std::string_view name;
    const Shape* inside = nullptr;  // of the object that it holds, or of those in its list
  };
  Member members[16] = {};   // those without a name are none
  bool in_template = false;  // the chat template gets the object as it came
};

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
    if (!result.ok()) return wrong(name, result.status());
    return std::move(result).value();
  }
  // A text that is one of `words`.
  Answer<std::optional<std::string>> word(std::string_view name,
                                          std::initializer_list<std::string_view> words);
  // A text or a list of texts.
  Answer<std::vector<std::string>> texts(std::string_view name, std::size_t most);

  // Members that are fine and say nothing to this program.
  void accept(std::initializer_list<std::string_view> names);
  // Known members without support: an error unless they ask for nothing (false, 0, "", [], {}).
  std::optional<Refusal> refuse(std::initializer_list<std::string_view> names);

  // What the object of this name, or the objects of its list, have beyond `shape` is unknown too.
  void look_into(std::string_view name, const Shape& shape);
  // That what a member asks for does not come: `what` goes behind its name.
  void warn(std::string_view name, std::string_view what);
  void add_warning(std::string warning);

  // What warn() was told, and a sentence for each member that nobody asked for.
  std::vector<std::string> warnings() const;

  Refusal wrong(std::string_view name, std::string_view what) const;
  Refusal wrong(std::string_view name, const Status& status) const;

 private:
  void look_at(const boost::json::value& value, const Shape& shape, const std::string& path);

  const boost::json::object& object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
  std::vector<std::string> warnings_;
};

}  // namespace strata::serve
