// What readers of the schemas of one request share: how much these may cost, and what of them is
// not held.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"

namespace strata {

// Counts the work of all that read schemas of one request, in steps, each about as long as copying
// a small value takes.
class SchemaWork {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 18;

  std::size_t spent() const { return spent_; }
  bool is_over() const { return spent_ > kMost; }
  // Fails where there have been too many, and then always.
  Status spend(std::size_t steps);

 private:
  std::size_t spent_ = 0;
};

// Sentences about keywords that answers are not held to. Where `strict`, a keyword that could be
// held and is not is an error instead.
class SchemaNotes {
 public:
  static constexpr std::size_t kMost = 64;  // what is beyond is counted

  explicit SchemaNotes(bool strict = false) : strict_(strict) {}

  bool strict() const { return strict_; }
  void add(std::string note);
  void add(const SchemaNotes& others);
  std::vector<std::string> all() const;

 private:
  bool strict_;
  std::set<std::string> known_;
  std::vector<std::string> notes_;  // in their order
  std::size_t more_ = 0;
};

// Steps to copy a value. Counts no further than what exceeds `most`.
std::size_t copy_steps(const boost::json::value& value, std::size_t most = SchemaWork::kMost);
std::size_t copy_steps(const boost::json::object& object, std::size_t most = SchemaWork::kMost);

}  // namespace strata
