#!/usr/bin/perl
# report.pl PARTS FILE.json NAME...: put together what the benches left in PARTS: a table, and all of it as JSON.
# report.pl --markdown FILE.json...: tables of such files, as docs/performance.md has them.
use strict;
use warnings;

use File::Basename qw(dirname);
use File::Path qw(make_path);
use JSON::PP ();
use POSIX qw(strftime);

my $json = JSON::PP->new->canonical->pretty;
if (@ARGV && $ARGV[0] eq '--markdown')
{
	markdown($json->decode(slurp($_) // die "$_: $!\n")) for @ARGV[ 1 .. $#ARGV ];
	exit(0);
}
my ($parts, $file, @names) = @ARGV;
my %report = (
	format => 1,
	date => strftime('%Y-%m-%dT%H:%M:%SZ', gmtime),
	commit => qx(git rev-parse --short HEAD 2>/dev/null) =~ s/\s//gr,
	machine => { cores => qx(nproc) + 0, kernel => qx(uname -r) =~ s/\s//gr, memory_mb => memory_mb(), load => (split(' ', slurp('/proc/loadavg') // '0'))[0] + 0 },
	order => [@names],
	settings => { map { (lc($_) => $ENV{$_}) } grep { /^BENCH_(ROWS|ROUNDS|BIG_ROWS|TX_ROWS|SECONDS|RATES|LATENCY_TX|OPTIONS)$/ } keys %ENV },
	benches => {},
);
my ($missed, $failed) = (0, 0);

printf "\n%s, %d cores, load %.2f\n", $report{date}, $report{machine}{cores}, $report{machine}{load};
for my $name (@names)
{
	my $text = slurp("$parts/$name.json");
	if (!defined $text) { print "\n$name: failed, no result\n"; $failed++; next; }
	my $part = $json->decode($text);
	$report{benches}{$name} = $part;
	show($part);
}
make_path(dirname($file));
open(my $out, '>', $file) or die "$file: $!\n";
print $out $json->encode(\%report);
close($out);
printf "\n%d goals missed, %d failed; %s\n", $missed, $failed, $file;
exit($failed ? 1 : 0);

sub slurp { my ($path) = @_; open(my $in, '<', $path) or return; local $/; return scalar <$in>; }
sub memory_mb { return (slurp('/proc/meminfo') // '') =~ /MemTotal:\s*(\d+)/ ? int($1 / 1024) : undef; }
sub median { my @sorted = sort { $a <=> $b } @_; my $half = int(@sorted / 2); return @sorted % 2 ? $sorted[$half] : ($sorted[ $half - 1 ] + $sorted[$half]) / 2; }

# One bench as lines; fills in what the JSON has besides the raw rounds.
sub show
{
	my ($part) = @_;
	printf "\n%s: %s, %s, %d rows, %d rounds, %.0f s\n", @$part{qw(name)}, @{ $part->{versions} }{qw(source postgres)}, @$part{qw(rows rounds seconds)};
	printf "  %-40s %10s %10s %10s %14s\n", '', 'min s', 'median s', 'max s', 'per second' if @{ $part->{series} };
	for my $series (@{ $part->{series} })
	{
		my @seconds = sort { $a <=> $b } map { $_->{seconds} } @{ $series->{rounds} };
		@$series{qw(min median max)} = ($seconds[0], median(@seconds), $seconds[-1]);
		$series->{per_second} = median(map { $_->{rows} / $_->{seconds} } @{ $series->{rounds} });
		printf "  %-40s %10.3f %10.3f %10.3f %14.0f\n", $series->{name}, @$series{qw(min median max per_second)};
	}
	for (@{ $part->{ratios} }, @{ $part->{values} })
	{
		my $is_ratio = exists $_->{ours};
		my $goal = '';
		if (defined $_->{goal})
		{
			$_->{met} = ($is_ratio ? $_->{value} >= $_->{goal} : $_->{value} <= $_->{goal}) ? JSON::PP::true : JSON::PP::false;
			$goal = sprintf('%s %s: %s', $is_ratio ? 'at least' : 'at most', $_->{goal}, $_->{met} ? 'met' : 'MISSED');
			$missed++ unless $_->{met};
		}
		printf "  %-40s %10.2f %-9s %s\n", $_->{name}, $_->{value}, $is_ratio ? 'times' : $_->{unit}, $goal;
	}
	for (@{ $part->{checks} })
	{
		printf "  %-40s %s\n", $_->{name}, $_->{ok} ? 'equal: ' . join(', ', @{ $_->{of} }) : "NOT EQUAL: $_->{detail}";
		$failed++ unless $_->{ok};
	}
	printf "  SKIPPED: %s: %s\n", $_->{name}, ($_->{why} =~ /(.*)/)[0] for @{ $part->{skipped} };
	return;
}

sub markdown
{
	my ($report) = @_;
	for my $part (grep { defined } map { $report->{benches}{$_} } @{ $report->{order} })
	{
		printf "%s, %s; commit %s, %d cores, load %.1f; %d rows, %d rounds\n\n", @{ $part->{versions} }{qw(source postgres)}, $report->{commit}, @{ $report->{machine} }{qw(cores load)}, @$part{qw(rows rounds)}
		  if $part->{name} eq $report->{order}[0];
		my $unit = $part->{unit} eq 'bytes' ? 'MB/s' : '1 000 rows/s';
		if (@{ $part->{series} })
		{
			print "| $part->{name} | median s (min, max) | $unit |\n|---|---|---|\n";
			printf "| %s | %.3f (%.3f, %.3f) | %.1f |\n", $_->{name}, @$_{qw(median min max)}, $_->{per_second} / ($part->{unit} eq 'bytes' ? 1e6 : 1e3) for @{ $part->{series} };
			print "\n";
		}
		print "| $part->{name} | | goal |\n|---|---|---|\n";
		for (@{ $part->{ratios} }, @{ $part->{values} })
		{
			my $is_ratio = exists $_->{ours};
			my $goal = defined $_->{goal} ? sprintf('%s %s: %s', $is_ratio ? 'at least' : 'at most', $_->{goal}, $_->{met} ? 'met' : 'missed') : '';
			printf "| %s | %.2f %s | %s |\n", $_->{name} =~ s/\|/\\|/gr, $_->{value}, $is_ratio ? 'times' : $_->{unit}, $goal;
		}
		print "| not measured: $_->{name} | " . ($_->{why} =~ /(.*)/)[0] . " | |\n" for @{ $part->{skipped} };
		print "\n";
	}
	return;
}
