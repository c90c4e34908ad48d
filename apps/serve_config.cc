#include "serve_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/printable.h"

namespace strata::apps {
namespace {

class Parser {
 public:
  Parser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Result<std::vector<Setting>> parse() {
    std::vector<Setting> out;
    while (skip_blank(true)) {
      STRATA_ASSIGN(Setting setting, parse_setting());
      out.push_back(std::move(setting));
    }
    return out;
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char next() const { return at_end() ? '\n' : text_[at_]; }
  std::string_view line_end() const { return text_.substr(at_, text_.find('\n', at_) - at_); }

  Status wrong(std::string_view what) const {
    return invalid_argument("{}, line {}: {}", printable(path_), line_, what);
  }
  Status wrong_value(std::string_view what) const {
    return wrong(fmt::format("{} {}", printable(name_, 100), what));
  }

  // Blanks and comments, of further lines too where `lines`. Whether there is more.
  bool skip_blank(bool lines) {
    while (!at_end()) {
      if (next() == '#')
        at_ += line_end().size();
      else if (trimmed(text_.substr(at_, 1)).empty() && (lines || next() != '\n'))
        line_ += text_[at_++] == '\n' ? 1 : 0;
      else
        return true;
    }
    return false;
  }

  Result<Setting> parse_setting() {
    if (next() == '[')
      return wrong(fmt::format("{}: tables are not known here; options stand without one",
                               printable(trimmed(line_end()), 100)));
    const std::string_view line = line_end();
    const std::size_t equals = line.find('=');
    name_ = trimmed(line.substr(0, equals));
    if (equals == std::string_view::npos || name_.empty())
      return wrong(fmt::format("'{}' is not of the form NAME = VALUE",
                               printable(trimmed(line.substr(0, line.find('#'))), 100)));
    at_ += equals + 1;
    skip_blank(false);
    Setting setting{name_, line_, {}};
    std::ranges::replace(setting.name, '_', '-');
    if (next() == '[') {
      STRATA_ASSIGN(setting.values, parse_list());
    } else {
      STRATA_ASSIGN(std::string value, parse_value());
      setting.values.push_back(std::move(value));
    }
    skip_blank(false);
    if (next() != '\n') return wrong_value("has more than one value, and no [] around them");
    return setting;
  }

  Result<std::vector<std::string>> parse_list() {
    const int first = line_;
    std::vector<std::string> values;
    ++at_;
    while (skip_blank(true) && next() != ']') {
      STRATA_ASSIGN(std::string value, parse_value());
      values.push_back(std::move(value));
      if (!skip_blank(true)) break;
      if (next() == ',')
        ++at_;
      else if (next() != ']')
        return wrong_value("has a list without a comma or ] behind a value");
    }
    if (at_end()) {
      line_ = first;
      return wrong_value("has a list that does not close");
    }
    ++at_;
    return values;
  }

  Result<std::string> parse_value() {
    if (next() == '"' || next() == '\'') return parse_text();
    const std::size_t size = line_end().find_first_of(" \t\r,]#");
    std::string word(line_end().substr(0, size));
    if (word.empty()) return wrong_value("has no value behind its =");
    const bool number = word.find_first_not_of("0123456789+-._eE") == std::string::npos;
    if (!number && word != "true" && word != "false")
      return wrong_value("has a text without quotes");
    at_ += word.size();
    if (number) std::erase(word, '_');
    return word;
  }

  Result<std::string> parse_text() {
    const char quote = text_[at_++];
    std::string out;
    for (; next() != quote; ++at_) {
      if (next() == '\n') return wrong_value("has a text whose quotes do not close");
      if (next() != '\\' || quote == '\'') {
        out += next();
        continue;
      }
      ++at_;
      if (next() != '"' && next() != '\\')
        return wrong_value("has a \\ before something else than \" or \\; write '...' around it");
      out += next();
    }
    ++at_;
    return out;
  }

  const std::string& path_;
  const std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::string name_;  // of the setting being read
};

}  // namespace

Result<std::vector<Setting>> parse_settings(const std::string& path, std::string_view text) {
  return Parser(path, text).parse();
}

}  // namespace strata::apps
