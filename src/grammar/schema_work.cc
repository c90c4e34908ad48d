#include "grammar/schema_work.h"

#include <algorithm>
#include <boost/json.hpp>

namespace strata {
namespace {

constexpr std::size_t kStepBytes = 64;  // of text, that are copied in one step

}  // namespace

Status SchemaWork::spend(std::size_t steps) {
  spent_ += std::min(steps, kMost + 1 - spent_);
  if (spent_ <= kMost) return {};
  return resource_exhausted("the schemas of the request are too much work: more than {} steps",
                            kMost);
}

void SchemaNotes::add(std::string note) {
  if (known_.contains(note)) return;
  if (notes_.size() == kMost) {
    ++more_;
    return;
  }
  known_.insert(note);
  notes_.push_back(std::move(note));
}

void SchemaNotes::add(const SchemaNotes& others) {
  for (const std::string& note : others.notes_) add(note);
  more_ += others.more_;
}

std::vector<std::string> SchemaNotes::all() const {
  std::vector<std::string> out = notes_;
  if (more_ > 0)
    out.push_back(fmt::format("answers are not held to {} more keywords of schemas", more_));
  return out;
}

std::size_t copy_steps(const boost::json::object& object, std::size_t most) {
  std::size_t steps = 1;
  for (const auto& [key, value] : object) {
    if (steps > most) break;
    steps += key.size() / kStepBytes + copy_steps(value, most - steps);
  }
  return steps;
}

std::size_t copy_steps(const boost::json::value& value, std::size_t most) {
  if (const auto* text = value.if_string()) return 1 + text->size() / kStepBytes;
  if (const auto* object = value.if_object()) return copy_steps(*object, most);
  std::size_t steps = 1;
  if (const auto* list = value.if_array())
    for (const boost::json::value& item : *list) {
      if (steps > most) break;
      steps += copy_steps(item, most - steps);
    }
  return steps;
}

}  // namespace strata
