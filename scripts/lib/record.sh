# shellcheck shell=bash
# Keeps the files of a run in the repository. Sourced by scripts/record and tests/report/record, never run by itself.

# Puts JSON on one line without spaces between its parts; this works because no text contains a newline.
compact() { # FILE
    sed -E 's/^ +//; s/^("[^"\\]*"): /\1:/' "$1" | tr -d '\n' >"$1.tmp"
    echo >>"$1.tmp"
    mv "$1.tmp" "$1"
}

# Replaces a text in the files of a folder. Histograms are left as they are: .hlog has base64, which may look like it.
replace() { # OLD NEW FOLDER
    local literally=${1//\\/\\\\}
    literally=${literally//./\\.}
    find "$3" -type f ! -name '*.h*' -exec sed -i "s|$literally|$2|g" {} +
}

# Copies what a run measured into a new folder TO, without its report, and with neutral names for this machine's
# folders. The run's folder FROM is below PARENT.
keep() { # FROM TO PARENT
    local file
    rm -rf "$2"
    mkdir -p "$2"
    for file in "$1"/*.{json,ndjson,txt,hgrm,hlog}; do
        [[ -e $file ]] || continue
        cp "$file" "$2"
        [[ $file != *.json ]] || compact "$2/${file##*/}"
    done
    # The parent first, because it is below the working directory.
    replace "$3" results "$2"
    replace "$PWD" . "$2"
}
