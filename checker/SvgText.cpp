//===- SvgText.cpp - the text of an SVG picture ---------------------------===//

#include "checker/SvgText.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace bowline {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";
constexpr absl::string_view kEllipsis = "\xE2\x80\xA6";

/// The number of bytes of the character that a text begins with; 0 where it is no UTF-8, or forbidden in XML 1.0.
size_t characterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80)
    return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const size_t bytes = first >= 0xF5 ? 0 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (bytes == 0 || text.size() < bytes)
    return 0;
  uint32_t character = first & (0xFFU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
    character = character << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool isSurrogate = character >= 0xD800 && character <= 0xDFFF;
  if (character < kSmallest[bytes] || character > 0x10FFFF || isSurrogate || character == 0xFFFE || character == 0xFFFF)
    return 0;
  return bytes;
}

/// Three digits, without zeros at the end of a fraction.
std::string threeDigits(double value) {
  std::string text = absl::StrFormat("%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
      text.pop_back();
  }
  return text;
}

} // namespace

std::string escapeXml(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = characterBytes(text);
    const absl::string_view character = bytes == 0 ? kReplacement : text.substr(0, bytes);
    if (character == "&")
      out += "&amp;";
    else if (character == "<")
      out += "&lt;";
    else if (character == ">")
      out += "&gt;";
    else if (character == "\"")
      out += "&quot;";
    else
      absl::StrAppend(&out, character);
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

std::string shortened(absl::string_view text, size_t most) {
  if (most == 0)
    return "";
  size_t beforeLast = 0, end = 0;
  for (size_t count = 0; end < text.size(); ++count) {
    if (count == most)
      return absl::StrCat(text.substr(0, beforeLast), kEllipsis);
    beforeLast = end;
    end += std::max<size_t>(characterBytes(text.substr(end)), 1);
  }
  return std::string(text);
}

std::string pixels(double value) {
  std::string text = absl::StrFormat("%.1f", value);
  if (text.compare(text.size() - 2, 2, ".0") == 0)
    text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string describeBytes(uint64_t bytes) {
  constexpr std::array<const char *, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024)
    return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1023.95 && unit + 1 < kUnits.size(); ++unit)
    value /= 1024;
  return absl::StrFormat("%.*f %s", value < 99.995 ? 2 : 1, value, kUnits[unit]);
}

std::string describeSeconds(double seconds) {
  if (seconds == 0)
    return "0 s";
  if (seconds < 0.9995e-6)
    return threeDigits(1e9 * seconds) + " ns";
  if (seconds < 0.9995e-3)
    return threeDigits(1e6 * seconds) + " \xC2\xB5s";
  if (seconds < 0.9995)
    return threeDigits(1e3 * seconds) + " ms";
  return seconds < 1e6 ? threeDigits(seconds) + " s" : absl::StrFormat("%.3g s", seconds);
}

double distanceOfMarks(double length, unsigned most) {
  if (!(length > 0) || most == 0)
    return 0;
  const double least = length / most;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least)
      return factor * power;
  return 10 * power;
}

SvgText::SvgText(double width, double height, absl::string_view title, absl::string_view styles) {
  out_ = absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", pixels(width), "\" height=\"",
                      pixels(height), "\" viewBox=\"0 0 ", pixels(width), " ", pixels(height),
                      "\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>", escapeXml(title),
                      "</title>\n<style>\n", styles, "</style>\n");
  absl::StrAppend(&out_, "<rect width=\"", pixels(width), "\" height=\"", pixels(height), "\" fill=\"#ffffff\"/>\n");
}

void SvgText::beginGroup(absl::string_view style, absl::string_view role) {
  absl::StrAppend(&out_, "<g class=\"", style, "\" data-role=\"", escapeXml(role), "\">\n");
}

void SvgText::endGroup() { out_ += "</g>\n"; }

void SvgText::close(absl::string_view element, absl::string_view title) {
  if (title.empty())
    out_ += "/>\n";
  else
    absl::StrAppend(&out_, "><title>", escapeXml(title), "</title></", element, ">\n");
}

void SvgText::text(absl::string_view style, double x, double y, absl::string_view text, absl::string_view title) {
  absl::StrAppend(&out_, "<text class=\"", style, "\" x=\"", pixels(x), "\" y=\"", pixels(y), "\">");
  if (!title.empty())
    absl::StrAppend(&out_, "<title>", escapeXml(title), "</title>");
  absl::StrAppend(&out_, escapeXml(text), "</text>\n");
}

void SvgText::rectangle(absl::string_view style, double x, double y, double width, double height,
                        absl::string_view title) {
  absl::StrAppend(&out_, "<rect class=\"", style, "\" x=\"", pixels(x), "\" y=\"", pixels(y), "\" width=\"",
                  pixels(width), "\" height=\"", pixels(height), "\"");
  close("rect", title);
}

void SvgText::line(absl::string_view style, double x1, double y1, double x2, double y2) {
  absl::StrAppend(&out_, "<line class=\"", style, "\" x1=\"", pixels(x1), "\" y1=\"", pixels(y1), "\" x2=\"",
                  pixels(x2), "\" y2=\"", pixels(y2), "\"/>\n");
}

void SvgText::circle(absl::string_view style, double x, double y, double radius, absl::string_view title) {
  absl::StrAppend(&out_, "<circle class=\"", style, "\" cx=\"", pixels(x), "\" cy=\"", pixels(y), "\" r=\"",
                  pixels(radius), "\"");
  close("circle", title);
}

void SvgText::path(absl::string_view style, absl::string_view path, absl::string_view title) {
  absl::StrAppend(&out_, "<path class=\"", style, "\" d=\"", path, "\"");
  close("path", title);
}

std::string SvgText::finish() && {
  out_ += "</svg>\n";
  return std::move(out_);
}

} // namespace bowline
