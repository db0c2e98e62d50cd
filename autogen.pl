#!/usr/bin/env perl
#
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Collect what takes part in the build, then run autoreconf.
#
# A framework is a directory PROJECT/mca/NAME with a base/; a component is a
# directory PROJECT/mca/FRAMEWORK/NAME with a configure.m4 and a Makefile.am,
# as in Open MPI's own tree.  Libraries without MPI (lib/NAME), extensions (ompi/mpiext/NAME)
# and tools (ompi/tools/NAME) need a Makefile.am only.  So a new one is one directory,
# and no shared file changes.
#
# Writes config/ompi_crypt_found.m4, tests/unit/tests.am from
# tests/unit/tests.list, and config/dist.am: the documents, examples and tests
# that belong into a tarball.

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Find qw(find);

chdir(dirname(abs_path($0))) or die "autogen.pl: $!\n";
my $help = "usage: ./autogen.pl\n";
die $help if @ARGV;

# Names of the subdirectories of $_[0] that contain every file of the rest.
sub directories_with {
    my ($parent, @files) = @_;
    opendir(my $handle, $parent) or return ();
    my @names = sort grep { !/^\./ && -d "$parent/$_" } readdir($handle);
    closedir($handle);
    return grep { my $name = $_; !grep { !-e "$parent/$name/$_" } @files } @names;
}

# Replace a file only when its content changes, so that make rebuilds little.
sub write_file {
    my ($path, $text) = @_;
    if (open(my $old, '<', $path)) {
        local $/;
        return if <$old> eq $text;
    }
    open(my $new, '>', $path) or die "autogen.pl: $path: $!\n";
    print $new $text;
    close($new) or die "autogen.pl: $path: $!\n";
}

# 1. frameworks and components
my (@frameworks, @components, @includes);
foreach my $project ('opal', 'ompi') {
    # The common libraries come first: the others link to them.
    my @names = sort { ($b eq 'common') <=> ($a eq 'common') || $a cmp $b }
        directories_with("$project/mca");
    foreach my $framework (@names) {
        my $directory = "$project/mca/$framework";
        if (-d "$directory/base" && -e "$directory/Makefile.am") {
            push(@frameworks, [$project, $framework]);
            push(@includes, "$directory/configure.m4") if -e "$directory/configure.m4";
        }
        foreach my $component (directories_with($directory, 'configure.m4', 'Makefile.am')) {
            push(@components, [$project, $framework, $component]);
            push(@includes, "$directory/$component/configure.m4");
        }
    }
}

# 2. directories that exist in this build only
my @others = ((map { "lib/$_" } directories_with('lib', 'Makefile.am')),
              (map { "ompi/mpiext/$_" } directories_with('ompi/mpiext', 'Makefile.am')),
              (map { "ompi/tools/$_" } directories_with('ompi/tools', 'Makefile.am')));
foreach my $directory (@others) {
    push(@includes, "$directory/standalone.m4") if -e "$directory/standalone.m4";
}

my $m4 = "dnl Made by autogen.pl.\n";
$m4 .= "m4_include([$_])\n" foreach @includes;
$m4 .= "AC_DEFUN([OMPI_CRYPT_FOUND_FRAMEWORKS], [\n"
    . join('', map { "    OMPI_CRYPT_FRAMEWORK([$_->[0]], [$_->[1]])\n" } @frameworks) . "])\n";
$m4 .= "AC_DEFUN([OMPI_CRYPT_FOUND_COMPONENTS], [\n"
    . join('', map { "    OMPI_CRYPT_COMPONENT([$_->[0]], [$_->[1]], [$_->[2]])\n" } @components) . "])\n";
$m4 .= "AC_DEFUN([OMPI_CRYPT_FOUND_OTHERS], [\n"
    . join('', map { "    OMPI_CRYPT_OTHER([$_])\n" } @others) . "])\n";
write_file('config/ompi_crypt_found.m4', $m4);

# 3. unit tests: one line each
my @tests;
if (open(my $list, '<', 'tests/unit/tests.list')) {
    while (<$list>) {
        s/#.*//;
        push(@tests, [split]) if /\S/;
    }
}
my @every_provider = map { $_->[2] } grep { $_->[1] eq 'aead' } @components;
my $am = "# Made by autogen.pl from tests.list.\nnoinst_HEADERS = aead_found.h\ncheck_PROGRAMS ="
    . join('', map { " \\\n    $_->[0]" } @tests) . "\n";
foreach my $test (grep { @$_ > 1 } @tests) {
    my ($name, @words) = @$test;
    my $record = grep { $_ eq 'record' } @words;
    my @providers = map { $_ eq 'providers' ? @every_provider : $_ } grep { !/^(record|ssl|exports|btl|once)$/ } @words;
    my $btl = grep { $_ eq 'btl' } @words;
    my $ssl = grep { $_ eq 'ssl' } @words;
    @providers = ('openssl') if !@providers;
    $am .= "${name}_LDADD =" . ($btl ? ' $(btl_engine)' : '') . join('', map { " \$(OMPI_CRYPT_MODULE_$_)" } @providers) . ($ssl ? ' -lssl' : '')
        . ($record ? " \$(core_record)\n${name}_CPPFLAGS = \$(AM_CPPFLAGS) -DOPAL_CRYPT_TEST_RECORD\n"
                   : " \$(core)\n");
    $am .= "${name}_LDFLAGS = \$(AM_LDFLAGS) -export-dynamic\n" if grep { $_ eq 'exports' } @words;
}
# automake does not see what configure's variables in LDADD stand for: without this a
# program keeps the provider that it was linked to first.
$am .= '$(check_PROGRAMS):' . join('', map { " \$(OMPI_CRYPT_MODULE_$_)" } @every_provider) . "\n";
write_file('tests/unit/tests.am', $am);
write_file('tests/unit/aead_found.h', "/* Made by autogen.pl: PROVIDER(name) for each provider that is built. */\n"
    . join('', map { "#ifdef OMPI_CRYPT_HAVE_AEAD_\U$_\E\nPROVIDER($_)\n#endif\n" } @every_provider));

# 4. what a tarball holds besides what the build names: in a repository, what
# git knows or would add; a tarball brings its list; else all that there is
my @places = ('.ci', 'debian', 'docs', 'examples', 'packaging', 'tests');
my @files;
if (-e '.git') {
    @files = split(/\0/, `git ls-files -z --cached --others --exclude-standard -- @places`);
}
if (!@files && !-e 'config/dist.am') {
    find({no_chdir => 1, wanted => sub { push(@files, $_) if -f $_ }}, @places);
}
if (@files) {
    @files = sort grep { -e $_ && !m{/\.[^/]*$} && !m{^tests/unit/(Makefile\.am|[^/]*\.c|tests\.am)$} } @files;
    write_file('config/dist.am', "# Made by autogen.pl.\nEXTRA_DIST +=" . join('', map { " \\\n    $_" } @files) . "\n");
}

printf("autogen.pl: %d components, %d other directories, %d unit tests\n",
       scalar(@components), scalar(@others), scalar(@tests));
exec('autoreconf', '--install', '--force', '--warnings=all,no-obsolete,no-portability,no-override')
    or die "autogen.pl: autoreconf: $! (apt install autoconf automake libtool)\n";
