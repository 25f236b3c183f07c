# Turns bytes, as `od -An -v -tu1` prints them, into the inside of a JSON string in ASCII: the last `limit` characters.
# As numbers, neither a locale nor awk's own idea of a character has a say in them; what is no UTF-8 becomes U+FFFD.

function put(code) {
  if (code == 34 || code == 92) text[n++] = "\\" sprintf("%c", code)
  else if (code == 10) text[n++] = "\\n"
  else if (code >= 32 && code < 127) text[n++] = sprintf("%c", code)
  else if (code < 65536) text[n++] = sprintf("\\u%04x", code)
  else text[n++] = sprintf("\\u%04x\\u%04x", 55232 + int(code / 1024), 56320 + code % 1024)
}
function expect(count, bits, floor) { missing = count; code = bits; least = floor }
function take(byte) {
  if (missing && byte >= 128 && byte < 192) {
    code = code * 64 + byte - 128
    if (--missing == 0) put(code < least || code > 1114111 || (code > 55295 && code < 57344) ? 65533 : code)
    return
  }
  if (missing) { missing = 0; put(65533) }
  if (byte < 128) put(byte)
  else if (byte >= 194 && byte < 224) expect(1, byte - 192, 128)
  else if (byte >= 224 && byte < 240) expect(2, byte - 224, 2048)
  else if (byte >= 240 && byte < 245) expect(3, byte - 240, 65536)
  else put(65533)
}
{ for (i = 1; i <= NF; i++) take($i + 0) }
END {
  if (missing) put(65533)
  while (n && text[n - 1] == "\\n") n--
  for (i = n > limit ? n - limit : 0; i < n; i++) printf "%s", text[i]
}
