#!/bin/sh
# Makes the inputs of mix.toml in the folder data/ beside this script. It needs the Debian packages
#   gzip xz-utils zstd bzip2 hmmer gcc stockfish sysbench stress-ng
set -eu
cd "$(dirname "$0")"
mkdir -p data
cd data

# Text that compresses as text does: the same on every machine.
seq 1 6000000 | awk '{ x = (x * 1103515245 + 12345) % 2147483648; printf "%d %s-%d line %d\n", $1, substr("abcdefghijklmnopqrstuvwxyz", x % 20 + 1, x % 6 + 1), x % 9973, NR % 313 }' | head -c 30000000 > text

# A C program that is large enough for a compiler to think about.
awk 'BEGIN {
    for (f = 0; f < 1500; f++) {
        printf "int f%d(int a, int b) { int s = 0; for (int i = 0; i < b; i++) { s += a * i ^ (s >> %d); switch (s & 7) {", f, f % 13 + 1
        for (c = 0; c < 8; c++) printf " case %d: s = s * %d + b; break;", c, f + c * 31 + 3
        printf " } } return s%s; }\n", f ? sprintf(" + f%d(s & 3, 2)", f - 1) : ""
    }
    print "int main(int c, char **v) { (void)v; return f1499(c, 3) & 1; }"
}' > large.c

# A small protein family, and a data base of sequences to search with it.
cat > family.sto <<'STO'
# STOCKHOLM 1.0
seq1 MVLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGKKVADALTNAVAHVDDMPNALSALSDLHAHKL
seq2 MVLSGEDKSNIKAAWGKIGGHGAEYGAEALERMFASFPTTKTYFPHFDVSHGSAQVKGHGKKVADALASAAGHLDDLPGALSALSDLHAHKL
seq3 MVLSAADKGNVKAAWGKVGGHAAEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGAKVAAALTKAVEHLDDLPGALSELSDLHAHKL
seq4 MSLTKTERTIIVSMWAKISTQADTIGTETLERLFLSHPQTKTYFPHFDLHPGSAQLRAHGSKVVAAVGDAVKSIDDIGGALSKLSELHAYIL
//
STO
hmmbuild family.hmm family.sto > /dev/null
hmmemit --seed 7 -N 60000 family.hmm > members.fa
ls -l
