/* A job whose two threads wait for each other 60,000 times, as those of many OpenMP programs do.
   gcc -O2 -fopenmp barriers.c -o barriers */
#include <stdio.h>

int main(void) {
    double sum = 0;
    for (int round = 0; round < 60000; round++) {
#pragma omp parallel for reduction(+ : sum) schedule(static)
        for (int i = 0; i < 4000; i++)
            sum += 1.0 / (1.0 + i + round);
    }
    printf("%f\n", sum);
    return 0;
}
