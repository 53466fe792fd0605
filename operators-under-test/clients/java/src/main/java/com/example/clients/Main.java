package com.example.clients;

import io.javaoperatorsdk.operator.Operator;
import java.util.Set;

/** The Sample operator on the Java Operator SDK: reads come from its caches, as is usual there. */
public final class Main {

  private Main() {}

  public static void main(String[] args) {
    if (args.length != 2 || !args[0].equals("--namespace")) {
      System.err.println("usage: --namespace NAMESPACE");
      System.exit(2);
    }
    Operator operator = new Operator();
    operator.register(new SampleReconciler(), settings -> settings.settingNamespaces(Set.of(args[1])));
    operator.installShutdownHook(java.time.Duration.ofSeconds(5));
    operator.start();
  }
}
