# B32: how far one large source transaction is can be seen while it comes in, applied at once, kept at its XA PREPARE, and applied at its XA
# COMMIT; nothing of it is there before its end, and memory does not grow with it.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $rows = 200_000;
my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key auto_increment, v varchar(100) not null)', "insert into shop.t (v) values (repeat('x', 100))");
$source->sql('insert into shop.t (v) select v from shop.t') for 1 .. 17;
$source->sql("insert into shop.t (v) select v from shop.t limit " . ($rows - (1 << 17)));
# change by change, so that it takes a while
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"collapse": "off"}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
my $columns = q{concat_ws('|', coalesce(transaction_start, '-'), transaction_since is not null, transaction_changes, transaction_bytes)};
is($pipeline->status($columns), '-|f', 'between two transactions there is none');

# Look until the count of rows is what it will be; nothing else may be seen on the way.
sub look
{
	my ($name, $want, $after, $done) = @_;
	my $before = $postgres->psql('select count(*) from shop.t');
	my (%start, @changes, @bytes, $half);
	my $rss = sub { my ($kb) = slurp('/proc/' . $pipeline->status('ingest_pid') . '/status') =~ /^RssAnon:\s+(\d+)/m; return $kb; };
	my $idle = $rss->();
	my $peak = 0;
	$after->();
	my $ended = poll_until(sub {
		my ($start, $since, $changes, $bytes) = split(/\|/, $pipeline->status($columns));
		my $kb = eval { $rss->() } // 0;
		$peak = $kb if $kb > $peak;
		if ($start ne '-')
		{
			$start{$start}++;
			push @changes, $changes;
			push @bytes, $bytes;
		}
		my $count = $postgres->psql('select count(*) from shop.t');
		$half++ if $count != $want && $count != $before;
		return $done->();
	});
	ok($ended, "$name: it ends") or diag($pipeline->describe);
	my @middle = grep { $_ > 0 && $_ < $rows } @changes;
	cmp_ok(scalar(@middle), '>=', 1, "B32: $name: how far it is can be seen") or diag("@changes");
	is_deeply(\@changes, [ sort { $a <=> $b } @changes ], "$name: it only grows") or diag("@changes");
	cmp_ok($bytes[-1], '>', 50 * $changes[-1], "$name: and its bytes");
	is(scalar(keys %start), 1, "$name: it is one transaction, and where it starts is told") or diag(join(' ', %start));
	ok(!$half, "B33: $name: nothing of it is there before its end");
	cmp_ok($peak - $idle, '<', 60_000, "B32: $name: memory does not grow with it ($idle kB, $peak kB at most)");
	$pipeline->wait_for_catchup;
	is($pipeline->status($columns), '-|f', "$name: and then there is none");
	return;
}
my $arrived = sub { my ($want) = @_; return sub { return $postgres->psql('select count(*) from shop.t') == $want; }; };

look('DELETE', 0, sub { $source->sql('delete from shop.t') }, $arrived->(0));
my $fill = "insert into shop.t (v) select concat(a.n, repeat('y', 90)) from n a cross join n b";
$source->sql('create database elsewhere', 'use elsewhere', 'create table n (n int primary key)', 'insert into n values ' . join(', ', map { "($_)" } 1 .. 448));
$rows = 448 * 448;
look('XA PREPARE', 0, sub { $source->sql('use elsewhere', q{xa start 'x'}, $fill, q{xa end 'x'}, q{xa prepare 'x'}) }, sub { return $postgres->psql('select changes from cdc_prepared_transactions') eq $rows; });
look('XA COMMIT', $rows, sub { $source->sql(q{xa commit 'x'}) }, $arrived->($rows));
$pipeline->is_mirrored('both sides are equal');

done_testing();
